"""What speculation did in a pair of starts, where both speculated."""

from fractions import Fraction
from pathlib import Path

from labctl.agreement import disagreements
from tests.fakes.run_builder import SPECULATION, Counted, RunBuilder
from tests.fakes.two_verdicts import both

COUNTS: dict[str, Counted] = {
    "drafts": 100,
    "draft_tokens": 400,
    "accepted_tokens": 96,
    "accepted_per_position": [60, 30, 4, 2],
    "request_decode_time_sum": 4,
}
NAMES = {"cycle_saving", "acceptance_drift"}


def test_a_pair_of_speculating_starts_has_both_figures(tmp_path: Path) -> None:
    speculating = {"argument": "--speculative-config", "control": SPECULATION, "candidate": SPECULATION + " "}
    proof = {"counter": "drafts", "control": "positive", "candidate": "positive"}
    builder = RunBuilder(stops=False, packet={"preregistration": {"treatment": {**speculating, "proof": proof}}})
    for leg in builder.legs:
        leg.before.update(dict.fromkeys(COUNTS, 0) | {"accepted_per_position": [0, 0, 0, 0]})
        leg.after.update(COUNTS)
    builder.leg("B1").after.update(request_decode_time_sum=3, accepted_tokens=100, accepted_per_position=[64, 30, 4, 2])
    one, other = both(builder, tmp_path)
    found = {(figure.where, figure.name): figure.value for figure in one.effect if figure.name in NAMES}
    assert found["B1 vs A1", "cycle_saving"] == "10"
    assert Fraction(found["B1 vs A1", "acceptance_drift"]) == Fraction(1, 100)
    assert found["B2 vs A2", "cycle_saving"] == found["B2 vs A2", "acceptance_drift"] == "0"
    assert disagreements(one, other) == ()


def test_a_pair_of_which_one_start_speculates_has_neither(tmp_path: Path) -> None:
    one, _ = both(RunBuilder(stops=False), tmp_path)
    assert not NAMES & {figure.name for figure in one.effect}


def test_a_start_without_counters_gives_neither(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False, order=("A1", "B1"))
    builder.removed = {"legs/01-A1/metrics-after.prom"}
    one, other = both(builder, tmp_path)
    assert not NAMES & {figure.name for verdict in (one, other) for figure in verdict.effect}
