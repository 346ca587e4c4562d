"""What logs must and must not say: by rank, by named group and by arm, judged alike by both analyzers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.agreement import disagreements
from tests.fakes.run_builder import RunBuilder
from tests.fakes.two_verdicts import both, failed

Spoil = Callable[[RunBuilder], object]
LINE = "worker {rank}: captured graphs={graphs}, eager_breaks={breaks}"
PATTERN = r"worker (?P<rank>[0-9]+): captured graphs=(?P<graphs>[0-9]+), eager_breaks=(?P<eager_breaks>[0-9]+)"
BEFORE, AFTER = {"graphs": 146, "eager_breaks": 145}, {"graphs": 145, "eager_breaks": 144}
REQUIRED = {"pattern": PATTERN, "example": LINE.format(rank=0, graphs=1, breaks=1)}
PROOF = {"log": PATTERN, "example": REQUIRED["example"], "control": BEFORE, "candidate": AFTER, "ranks": 4}


def topology(rank: int, graphs: int) -> bytes:
    return LINE.format(rank=rank, graphs=graphs, breaks=graphs - 1).encode() + b"\r\n"


def registered(required: dict[str, object], proof: dict[str, object] | None = None) -> RunBuilder:
    """Four ranks print how their graphs were captured: 146/145 in A, 145/144 in B."""
    builder = RunBuilder(stops=False)
    said = builder.frozen_packet().preregistration.model_dump(mode="json")
    gates = [
        gate | {"require": [REQUIRED | required]} if gate["kind"] == "clean_log" else gate for gate in said["gates"]
    ]
    treatment = said["treatment"] | ({} if proof is None else {"proof": proof})
    builder.packet = {"preregistration": {"gates": gates, "treatment": treatment}}
    for leg in builder.legs:
        leg.log += b"".join(topology(rank, 146 if leg.name[0] == "A" else 145) for rank in range(4))
    return builder


def log(leg: str, before: bytes, after: bytes) -> Spoil:
    def spoil(builder: RunBuilder) -> None:
        assert before in builder.leg(leg).log
        builder.leg(leg).log = builder.leg(leg).log.replace(before, after)

    return spoil


SOUND: list[dict[str, object]] = [
    {"count": 4},
    {"ranks": 4},
    {"ranks": 4, "count": 1},
    {"ranks": 4, "control": BEFORE, "candidate": AFTER},
    {"ranks": 4, "control": {"graphs": "146"}},
    {"count": None},
]
SPOILED: list[tuple[dict[str, object], Spoil]] = [
    ({"count": 4}, log("B2", topology(3, 145), b"")),
    ({"count": None}, lambda b: [log(leg, b"captured", b"took")(b) for leg in ("A1",)]),
    ({"ranks": 4}, log("B2", topology(3, 145), topology(2, 145))),
    ({"ranks": 4}, log("A1", topology(3, 146), topology(3, 146) + topology(4, 146))),
    ({"ranks": 4, "count": 1}, log("A2", topology(3, 146), topology(3, 146) * 2)),
    ({"ranks": 5}, lambda _: None),
    ({"control": BEFORE, "candidate": AFTER}, log("B1", topology(2, 145), topology(2, 146))),
    ({"control": BEFORE, "candidate": BEFORE}, lambda _: None),
    ({"groups": BEFORE}, lambda _: None),
]
UNTREATED: list[Spoil] = [
    log("B2", topology(3, 145), topology(3, 146)),
    log("B1", topology(3, 145), b""),
    log("A1", topology(0, 146), topology(0, 145)),
    log("A2", b"captured", b"took"),
]


@pytest.mark.parametrize("required", SOUND)
def test_a_log_that_says_what_was_registered_passes_both(required: dict[str, object], tmp_path: Path) -> None:
    one, other = both(registered(required), tmp_path)
    assert failed(one) == []
    assert disagreements(one, other) == ()


@pytest.mark.parametrize(("required", "spoil"), SPOILED)
def test_one_other_line_fails_the_log_alone_by_both(required: dict[str, object], spoil: Spoil, tmp_path: Path) -> None:
    builder = registered(required)
    spoil(builder)
    one, other = both(builder, tmp_path)
    assert failed(one) == failed(other) == ["clean_log"]
    assert disagreements(one, other) == ()


def test_a_changed_graph_topology_proves_a_treatment(tmp_path: Path) -> None:
    one, other = both(registered({"count": 4}, PROOF), tmp_path)
    assert failed(one) == []
    assert disagreements(one, other) == ()
    (gate,) = (gate for gate in one.gates if gate.kind == "treatment")
    seen = {(figure.where, figure.name): figure.value for figure in gate.figures}
    assert [seen[leg, "graphs"] for leg in ("A1", "B1", "B2", "A2")] == ["146", "145", "145", "146"]
    assert [seen[leg, "eager_breaks"] for leg in ("A1", "B1")] == ["145", "144"]


@pytest.mark.parametrize("spoil", UNTREATED)
def test_a_treatment_that_one_rank_did_not_get_is_not_proved(spoil: Spoil, tmp_path: Path) -> None:
    builder = registered({"count": None, "pattern": "INFO", "example": "INFO"}, PROOF)
    spoil(builder)
    one, other = both(builder, tmp_path)
    assert failed(one) == failed(other) == ["treatment"]
    assert disagreements(one, other) == ()
