"""What vLLM has called its metrics from version to version: one row a name, with the minors that print it by default.

Up to 0.24 the rows follow the engine's own changes (its pull requests 18354, 24110 and 29330); from there on the names
were seen. A name that a version does not print is null in its vocabulary, so that nothing takes its absence for zero.
"""

from typing import NamedTuple

from labctl.engines.vocabulary import CounterNames

NEWEST = 10_000


class Name(NamedTuple):
    """One name of one thing."""

    field: str
    """The field of `CounterNames`."""
    name: str
    """The sample's name."""
    first_minor: int = 0
    """The first minor version that prints it."""
    last_minor: int = NEWEST
    """The last."""


NAMES = (
    Name("prompt_tokens", "vllm:prompt_tokens_total"),
    Name("generation_tokens", "vllm:generation_tokens_total"),
    Name("requests_succeeded", "vllm:request_success_total"),
    Name("preemptions", "vllm:num_preemptions_total"),
    Name("prefix_cache_queries", "vllm:gpu_prefix_cache_queries_total", 8, 9),
    Name("prefix_cache_queries", "vllm:prefix_cache_queries_total", 10),
    Name("prefix_cache_hits", "vllm:gpu_prefix_cache_hits_total", 8, 9),
    Name("prefix_cache_hits", "vllm:prefix_cache_hits_total", 10),
    Name("request_decode_time_sum", "vllm:request_decode_time_seconds_sum"),
    Name("drafts", "vllm:spec_decode_num_drafts_total"),
    Name("draft_tokens", "vllm:spec_decode_num_draft_tokens_total"),
    Name("accepted_tokens", "vllm:spec_decode_num_accepted_tokens_total"),
    Name("accepted_per_position", "vllm:spec_decode_num_accepted_tokens_per_pos_total"),
    Name("process_start_time", "process_start_time_seconds"),
    Name("requests_running", "vllm:num_requests_running"),
    Name("requests_waiting", "vllm:num_requests_waiting"),
    Name("cache_config", "vllm:cache_config_info"),
    Name("kv_cache_usage", "vllm:gpu_cache_usage_perc", 0, 9),
    Name("kv_cache_usage", "vllm:kv_cache_usage_perc", 10),
    Name("token_time_sum", "vllm:time_per_output_token_seconds_sum", 0, 10),
    Name("token_time_sum", "vllm:inter_token_latency_seconds_sum", 11),
)


def names_at(minor: int) -> CounterNames:
    """What one minor version calls its counters; fields that it does not print are null where they may be."""
    known = {one.field: one.name for one in NAMES if one.first_minor <= minor <= one.last_minor}
    return CounterNames.model_validate(known)
