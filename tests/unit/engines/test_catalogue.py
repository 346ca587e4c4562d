import json
import re

import pytest

from labctl.codes import Code
from labctl.engines.catalogue import ENGINES, engine_distributions, vocabulary_for
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import FreezeRefused

SEEN = {"reference": "reference-1", "vllm": "0.32.0"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_known_version_has_a_vocabulary_that_survives_its_file(engine: str) -> None:
    vocabulary = vocabulary_for(engine, SEEN[engine])
    assert EngineVocabulary.from_json(vocabulary.canonical(), "engine.json") == vocabulary
    assert vocabulary.engine == engine
    assert set(vocabulary.off_when_absent) <= set(json.loads(vocabulary.counters.canonical()))


@pytest.mark.parametrize(
    "version", ["0.24.0", "0.32.0", "0.32.1+cu130", "0.25.0rc1", "0.30.1.dev12+gabc.cpu", "0.31.0.post1"]
)
def test_a_vllm_vocabulary_is_for_the_very_version_that_was_found(version: str) -> None:
    pattern = vocabulary_for("vllm", version).version_pattern
    assert re.fullmatch(pattern, version)
    assert re.fullmatch(pattern, version.partition("+")[0])
    assert not re.fullmatch(pattern, "0.27.9")


@pytest.mark.parametrize(
    ("engine", "version"), [("vllm", "0.23.0"), ("vllm", "0.33.0"), ("vllm", "1.0"), ("vllm", ""), ("reference", "2")]
)
def test_an_unknown_version_is_refused_with_the_known_ones(engine: str, version: str) -> None:
    with pytest.raises(FreezeRefused, match=r"0\.24\.0 to 0\.32\.x|reference-1") as refused:
        vocabulary_for(engine, version)
    assert refused.value.codes == (Code.WRONG_VALUE,)


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FreezeRefused, match="reference, vllm"):
        vocabulary_for("llama", "1")


def test_only_the_embedded_endpoint_is_a_stand_in_and_no_distribution() -> None:
    assert [vocabulary_for(engine, SEEN[engine]).is_stand_in for engine in ENGINES] == [True, False]
    assert [bool(engine_distributions(engine)) for engine in ENGINES] == [False, True]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_pattern_compiles(engine: str) -> None:
    vocabulary = vocabulary_for(engine, SEEN[engine])
    for pattern in (*vocabulary.deny_patterns, vocabulary.unknown_environment_pattern):
        assert re.compile(pattern.encode()).pattern == pattern.encode()
    for option in vocabulary.forbidden_options:
        assert re.compile(option.pattern).pattern == option.pattern


@pytest.mark.parametrize(
    "line",
    [
        "(EngineCore pid=7) ERROR 11-29 15:54:59 [core.py:906] EngineCore encountered a fatal error.",
        "Traceback (most recent call last):",
        "(EngineCore pid=7) WARNING 11-29 15:54:59 [x.py:1] kernel 16,128,32 is missing, falling back to torch",
        "WARNING 11-29 15:54:59 [jit_monitor.py:130] Triton kernel JIT compilation during inference: _fwd. This",
    ],
)
def test_a_line_of_a_broken_vllm_is_denied(line: str) -> None:
    patterns = vocabulary_for("vllm", "0.32.0").deny_patterns
    assert any(re.search(pattern.encode(), line.encode()) for pattern in patterns)


@pytest.mark.parametrize(
    "line",
    [
        "(APIServer pid=6) ERROR 11-29 15:54:59 [async_llm.py:906] Traceback (most recent call last):",
        "(APIServer pid=6) ERROR 11-29 15:54:59 [async_llm.py:906] AsyncLLM output_handler failed.",
        "(APIServer pid=6) WARNING 11-29 15:54:35 [vllm.py:1703] Enforce eager set, disabling JIT kernel warmup.",
        "(EngineCore pid=6) WARNING 11-29 15:54:54 [vllm.py:725] using the V1 model runner instead.",
        "WARNING [system_utils.py:255] failed to increase with error current limit exceeds maximum limit.",
    ],
)
def test_a_line_of_an_orderly_vllm_is_not_denied(line: str) -> None:
    patterns = vocabulary_for("vllm", "0.32.0").deny_patterns
    assert not any(re.search(pattern.encode(), line.encode()) for pattern in patterns)


@pytest.mark.parametrize(
    "part",
    [
        '{"method":"suffix"}',
        '{"method":"draft_model","rejection_sample_method":"synthetic"}',
        '{"rejection_sample_method": "fly"}',
        "--enable-prefix-caching",
        "dummy",
        "--load-format=dummy",
    ],
)
def test_options_that_make_a_record_meaningless_are_named(part: str) -> None:
    options = vocabulary_for("vllm", "0.32.0").forbidden_options
    assert any(re.search(option.pattern, part) for option in options)


@pytest.mark.parametrize(
    "part", ["--no-enable-prefix-caching", '{"method":"ngram"}', "--load-format", "/models/dummy-7b"]
)
def test_harmless_options_are_not_named(part: str) -> None:
    options = vocabulary_for("vllm", "0.32.0").forbidden_options
    assert not any(re.search(option.pattern, part) for option in options)


def test_the_unknown_variable_warning_is_recognised() -> None:
    line = b"(APIServer pid=7) WARNING [interface.py:1457] Unknown vLLM environment variable detected: VLLM_X"
    assert re.search(vocabulary_for("vllm", "0.32.0").unknown_environment_pattern.encode(), line)
