"""What vLLM has called its metrics: one name a field and version, and none where the version prints none."""

import pytest

from labctl.engines.catalogue import vocabulary_for
from labctl.engines.vllm_names import NAMES, names_at
from labctl.engines.vocabulary import CounterNames

OLDEST_MINOR, NEWEST_MINOR = 8, 32
RENAMED = [
    ("kv_cache_usage", 9, "vllm:gpu_cache_usage_perc"),
    ("kv_cache_usage", 10, "vllm:kv_cache_usage_perc"),
    ("prefix_cache_hits", 9, "vllm:gpu_prefix_cache_hits_total"),
    ("prefix_cache_hits", 32, "vllm:prefix_cache_hits_total"),
    ("token_time_sum", 10, "vllm:time_per_output_token_seconds_sum"),
    ("token_time_sum", 13, "vllm:inter_token_latency_seconds_sum"),
]


@pytest.mark.parametrize(("field", "minor", "name"), RENAMED)
def test_a_renamed_metric_is_read_by_the_name_of_the_version(field: str, minor: int, name: str) -> None:
    assert getattr(names_at(minor), field) == name


@pytest.mark.parametrize("minor", range(OLDEST_MINOR, NEWEST_MINOR + 1))
def test_every_version_has_one_name_for_each_thing(minor: int) -> None:
    fields = [one.field for one in NAMES if one.first_minor <= minor <= one.last_minor]
    assert sorted(fields) == sorted(CounterNames.model_fields)


def test_the_embedded_endpoint_has_no_name_for_what_it_does_not_print() -> None:
    counters = vocabulary_for("reference", "reference-1").counters
    assert (counters.kv_cache_usage, counters.token_time_sum) == (None, None)
    assert "kv_cache_usage" not in counters.model_dump()


def test_a_vocabulary_has_the_names_of_its_own_version() -> None:
    assert vocabulary_for("vllm", "0.24.0").counters == names_at(24)
