"""What the embedded endpoint calls things: vLLM's names for the subset that it serves."""

from labctl.engines.vllm import COUNTERS, ENDPOINTS, OFF_WHEN_ABSENT
from labctl.engines.vocabulary import CounterNames, EngineVocabulary, ForbiddenOption

VERSION = "reference-1"
NOT_SERVED = {"kv_cache_usage", "token_time_sum"}

VOCABULARY = EngineVocabulary(
    engine="reference",
    versions=VERSION,
    version_pattern=VERSION,
    counters=CounterNames.model_validate(COUNTERS.model_dump(exclude=NOT_SERVED)),
    off_when_absent=OFF_WHEN_ABSENT,
    speculation_length_option="--speculative-config",
    endpoints=ENDPOINTS,
    served_name_option="--served-model-name",
    forbidden_options=(
        ForbiddenOption(pattern=r"^--enable-prefix-caching$", reason="rows would be served from earlier rows' work"),
    ),
    unknown_environment_pattern=r"Unknown [A-Za-z]{0,20} ?environment variable",
    deny_patterns=(r"Traceback \(most recent call last\)", r"\b(?:ERROR|CRITICAL)\b"),
    is_stand_in=True,
)
