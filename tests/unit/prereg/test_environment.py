"""Which variables may be registered."""

import pytest

from labctl.prereg.environment import BASE_ENVIRONMENT, objection_to


@pytest.mark.parametrize(
    "name",
    [
        *BASE_ENVIRONMENT,
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PROMETHEUS_MULTIPROC_DIR",
        "https_proxy",
        "ALL_PROXY",
        "HF_TOKEN",
        "AWS_SECRET_ACCESS",
        "DB_PASSWORD",
        "api_key",
    ],
)
def test_variables_that_would_spoil_a_start_are_refused(name: str) -> None:
    assert objection_to(name) is not None


@pytest.mark.parametrize(
    "name", ["HF_HUB_OFFLINE", "VLLM_CACHE_ROOT", "CUDA_VISIBLE_DEVICES", "TOKENIZERS_PARALLELISM", "KEYBOARD"]
)
def test_an_engines_own_variables_are_allowed(name: str) -> None:
    assert objection_to(name) is None
