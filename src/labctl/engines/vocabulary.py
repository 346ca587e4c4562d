"""The shape of an engine's vocabulary; freezing resolves one for the version and writes it to `engine.json`."""

from typing import Literal

from pydantic import Field

from labctl.frozen import FrozenModel


def _is_absent(value: object) -> bool:
    """Names that came later are left out where unknown, so that earlier vocabularies keep their one canonical form."""
    return value is None


def _is_of_records(value: object) -> bool:
    return value == "record"


class CounterNames(FrozenModel):
    """Prometheus sample names; a name that the version does not have is null."""

    prompt_tokens: str
    """Prompt tokens processed, a counter."""
    generation_tokens: str
    """Tokens generated, a counter."""
    requests_succeeded: str
    """Requests that ended well, a counter with one sample per finish reason."""
    preemptions: str
    """Requests that were preempted, a counter."""
    prefix_cache_queries: str
    """Tokens looked up in the prefix cache, a counter."""
    prefix_cache_hits: str
    """Tokens found in the prefix cache, a counter."""
    request_decode_time_sum: str
    """Seconds spent in decode, summed over requests."""
    drafts: str
    """Speculation: draft rounds, a counter."""
    draft_tokens: str
    """Speculation: proposed tokens, a counter."""
    accepted_tokens: str
    """Speculation: accepted tokens, a counter."""
    accepted_per_position: str
    """Speculation: accepted tokens by draft position, a counter with the label `position`."""
    process_start_time: str
    """Start of the server process in seconds since 1970, a gauge."""
    requests_running: str
    """Requests in work, a gauge."""
    requests_waiting: str
    """Requests that wait, a gauge."""
    cache_config: str | None = Field(default=None, exclude_if=_is_absent)
    """The cache's configuration, a gauge whose labels say how many blocks of how many tokens there are."""
    kv_cache_usage: str | None = Field(default=None, exclude_if=_is_absent)
    """The share of the cache of keys and values that is in use, a gauge."""
    token_time_sum: str | None = Field(default=None, exclude_if=_is_absent)
    """Seconds between tokens of one request, summed."""


class Endpoints(FrozenModel):
    """Paths of the HTTP surface."""

    health: str
    """Answers 200 when the server is ready, generating nothing."""
    version: str
    """Gives `{"version": …}`."""
    models: str
    """Lists the served model names."""
    metrics: str
    """Prometheus text."""
    completions: str
    """Text completions."""
    chat: str
    """Chat completions."""


class ForbiddenOption(FrozenModel):
    """An argument or environment setting that makes a measurement meaningless."""

    pattern: str
    """A regular expression searched in each argument and each NAME=value."""
    reason: str
    """Why."""
    refused_for: Literal["record", "every class"] = Field(default="record", exclude_if=_is_of_records)
    """The classes that cannot use it."""


class EngineVocabulary(FrozenModel):
    """What one engine, at one version, calls the things that labctl reads."""

    schema_id: Literal["labctl/engine/1"] = Field(default="labctl/engine/1", alias="schema")
    """The format of this document."""
    engine: str
    """The name that preregistrations use."""
    versions: str
    """The versions for which the names were seen, as text."""
    version_pattern: str
    """A regular expression that the served version must match in full."""
    counters: CounterNames
    """Prometheus names."""
    off_when_absent: tuple[str, ...]
    """Fields of `counters` whose absence means that the feature is off."""
    speculation_length_option: str
    """The argument that carries the speculation configuration (JSON with `num_speculative_tokens`)."""
    endpoints: Endpoints
    """HTTP paths."""
    served_name_option: str
    """The argument that sets the served model name."""
    forbidden_options: tuple[ForbiddenOption, ...]
    """What no campaign of class record may use, and some of it no campaign at all."""
    unknown_environment_pattern: str
    """A byte pattern of the log line that warns of an unknown environment variable."""
    deny_patterns: tuple[str, ...]
    """Byte patterns of log lines that no clean log holds (exceptions, fallbacks)."""
    kv_capacity_pattern: str | None = Field(default=None, exclude_if=_is_absent)
    """A byte pattern of the log line that says how many `tokens` (a named group) the cache holds."""
    is_stand_in: bool = False
    """Whether the engine is labctl's embedded endpoint, which every verdict must say."""
