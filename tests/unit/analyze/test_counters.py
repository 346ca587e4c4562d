from fractions import Fraction

import pytest

from labctl.analyze.counters import CounterDelta, Counters, parse_counters
from labctl.engines.reference import VOCABULARY
from labctl.errors import MalformedRecord

OFF = frozenset(VOCABULARY.off_when_absent)


def counters(*lines: str) -> Counters:
    return parse_counters("".join(f"{line}\n" for line in lines).encode(), VOCABULARY, "x.prom")


def test_samples_are_summed_over_engines_and_kept_by_other_labels() -> None:
    found = counters(
        "# TYPE vllm:request_success counter",
        'vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 1.0',
        'vllm:request_success_total{engine="1",finished_reason="stop",model_name="m"} 2.0',
        'vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 4.0',
        'vllm:request_success_created{engine="0",finished_reason="stop",model_name="m"} 1.8e+09',
        "something_else 7",
    )
    assert found.total("requests_succeeded") == 7
    assert found.by_label("requests_succeeded", "finished_reason") == {"stop": 3, "length": 4}
    assert found.total("drafts") is None


def test_a_fraction_of_a_second_is_kept_exactly() -> None:
    assert counters("vllm:request_decode_time_seconds_sum 0.5").total("request_decode_time_sum") == Fraction(1, 2)


@pytest.mark.parametrize(
    "lines",
    [
        ["vllm:num_preemptions_total NaN"],
        ["vllm:num_preemptions_total +Inf"],
        ["vllm:num_preemptions_total -1"],
        ["vllm:num_preemptions_total many"],
        ["vllm:num_preemptions_total{engine=0} 1"],
        ['vllm:num_preemptions_total{engine="0"} 1', 'vllm:num_preemptions_total{engine="0"} 1'],
    ],
)
def test_text_that_is_not_clean_is_malformed(lines: list[str]) -> None:
    with pytest.raises(MalformedRecord):
        counters(*lines)


def test_bytes_that_are_not_text_are_malformed() -> None:
    with pytest.raises(MalformedRecord):
        parse_counters(b"\xff 1\n", VOCABULARY, "x.prom")


def test_growth_is_after_minus_before() -> None:
    delta = CounterDelta(counters("vllm:num_preemptions_total 2"), counters("vllm:num_preemptions_total 5"), OFF)
    assert delta.grown("preemptions") == 3


def test_an_absent_counter_is_zero_only_where_absence_means_off() -> None:
    delta = CounterDelta(counters(), counters(), OFF)
    assert delta.grown("drafts") == 0
    assert delta.is_absent("drafts")
    assert delta.grown("preemptions") is None


def test_a_counter_that_appears_counts_from_zero_only_where_absence_means_off() -> None:
    after = counters("vllm:spec_decode_num_drafts_total 4", "vllm:num_preemptions_total 1")
    delta = CounterDelta(counters(), after, OFF)
    assert delta.grown("drafts") == 4
    assert delta.grown("preemptions") is None


def test_a_counter_that_vanishes_has_no_growth() -> None:
    delta = CounterDelta(counters("vllm:spec_decode_num_drafts_total 4"), counters(), OFF)
    assert delta.grown("drafts") is None


def test_growth_by_label_is_after_minus_before() -> None:
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    before = counters(f'{name}{{position="0"}} 1')
    after = counters(f'{name}{{position="0"}} 5', f'{name}{{position="1"}} 2')
    assert CounterDelta(before, after, OFF).grown_by_label("accepted_per_position", "position") == {"0": 4, "1": 2}
