from prometheus_client.parser import text_string_to_metric_families

from labctl.servers.reference.counters import Counters
from labctl.servers.reference.generation import Finish, Step

OWN = {"engine": "0", "model_name": 'a "b" \\ c'}


def samples(counters: Counters) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(counters.render(12.5))
        for sample in family.samples
    }


def value(counters: Counters, name: str, **labels: str) -> float:
    return samples(counters)[name, frozenset((OWN | labels).items())]


def test_drafts_and_their_places_are_counted() -> None:
    counters = Counters(OWN["model_name"], 3, ())
    counters.count_step(Step((1,), 0, None))
    counters.count_step(Step((1, 2, 3), 3, None))
    counters.count_step(Step((4,), 3, None))
    assert value(counters, "vllm:generation_tokens_total") == 5
    assert value(counters, "vllm:spec_decode_num_drafts_total") == 2
    assert value(counters, "vllm:spec_decode_num_draft_tokens_total") == 6
    assert value(counters, "vllm:spec_decode_num_accepted_tokens_total") == 2
    places = [
        value(counters, "vllm:spec_decode_num_accepted_tokens_per_pos_total", position=str(place)) for place in range(3)
    ]
    assert places == [1, 1, 0]


def test_without_speculation_its_counters_do_not_exist() -> None:
    assert not [name for name, _ in samples(Counters("m", 0, ())) if "spec_decode" in name]


def test_every_counter_tells_when_it_was_created() -> None:
    found = samples(Counters("m", 2, ()))
    totals = {(name.removesuffix("_total"), labels) for name, labels in found if name.endswith("_total")}
    births = {(name.removesuffix("_created"), labels) for name, labels in found if name.endswith("_created")}
    assert totals
    assert births - totals == {("vllm:request_decode_time_seconds", frozenset({("engine", "0"), ("model_name", "m")}))}
    assert totals <= births


def test_ends_are_counted_by_reason_and_by_decode_time() -> None:
    counters = Counters(OWN["model_name"], 0, ())
    counters.count_end(Finish.LENGTH, 0.3)
    counters.count_end("abort", 0.4)
    assert value(counters, "vllm:request_success_total", finished_reason="length") == 1
    assert value(counters, "vllm:request_success_total", finished_reason="stop") == 0
    assert value(counters, "vllm:request_decode_time_seconds_bucket", le="0.3") == 1
    assert value(counters, "vllm:request_decode_time_seconds_bucket", le="0.5") == 2
    assert value(counters, "vllm:request_decode_time_seconds_count") == 2
    assert value(counters, "vllm:request_decode_time_seconds_sum") == 0.3 + 0.4


def test_the_process_start_and_the_configuration_are_told() -> None:
    found = samples(Counters("m", 0, (("block_size", "16"),)))
    assert found["process_start_time_seconds", frozenset()] == 12.5
    assert found["vllm:cache_config_info", frozenset({("block_size", "16"), ("engine", "0")})] == 1
