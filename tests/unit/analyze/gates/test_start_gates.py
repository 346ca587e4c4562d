"""Gates on tokens, counters, memory and what is left: each passes a sound run, and one spoiled thing fails it alone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.agreement import disagreements
from labctl.engines.vocabulary import EngineVocabulary
from labctl.frozen import canonical_json
from labctl.records.verdict import GateResult, Verdict, VerdictKind
from tests.fakes.run_builder import RunBuilder, json_edit
from tests.fakes.two_verdicts import both

Spoil = Callable[[RunBuilder], object]
Gate = dict[str, object]
SURVIVAL = [60, 30, 8, 2]
CONFIGURATION = {"num_gpu_blocks": "100", "block_size": "16"}
PROOF = {"counter": "drafts", "control": "absent_or_zero", "candidate": "positive"}
NO_CACHE = {"cache_config": None}

DEGENERATE: Gate = {"kind": "degenerate_output"}
LONG: Gate = {"kind": "long_then_next"}
ROLLOVER: Gate = {"kind": "rollover", "min_prompt_tokens": 6}
MOVING: Gate = {"kind": "moving_difference"}
SHAPE: Gate = {"kind": "survival_shape"}
ACCEPTANCE: Gate = {"kind": "acceptance", "min_percent": "20"}
CAPACITY: Gate = {"kind": "kv_capacity", "min_tokens": 1600}
MEMORY: Gate = {"kind": "resident_memory", "max_bytes": 4096}
ROOFLINE: Gate = {"kind": "roofline", "bytes_per_second": "4000", "bytes_per_token": "2", "source": "a data sheet"}
POSTFLIGHT: Gate = {"kind": "postflight"}
GATES = (DEGENERATE, LONG, ROLLOVER, MOVING, SHAPE, ACCEPTANCE, CAPACITY, MEMORY, ROOFLINE, POSTFLIGHT)
WITHOUT_ORACLE = ("exact_tokens", "cross_leg_exact")


def registered(gates: tuple[Gate, ...], without: tuple[str, ...] = ()) -> RunBuilder:
    """A sound run with these gates beside the usual ones."""
    builder = RunBuilder(stops=False)
    usual = builder.frozen_packet().preregistration.model_dump(mode="json")["gates"]
    kept = [gate for gate in usual if gate["kind"] not in without]
    builder.packet = {"preregistration": {"gates": [*kept, *gates]}}
    for leg in builder.legs:
        leg.telemetry = b"".join(sample(size) for size in (1024, 4096))
        leg.before["cache_config"] = leg.after["cache_config"] = CONFIGURATION
        if leg.name[0] == "B":
            leg.after["accepted_per_position"] = [float(count) for count in SURVIVAL]
    return builder


def sample(size: object) -> bytes:
    return canonical_json({"row": 1, "server_rss_bytes": size})


def fill(leg: str, number: int, cycle: list[int]) -> Spoil:
    def spoil(builder: RunBuilder) -> None:
        ids = builder.leg(leg).rows[number].ids
        ids[:] = (cycle * len(ids))[: len(ids)]

    return spoil


def token(leg: str, number: int, place: int) -> Spoil:
    return lambda builder: builder.leg(leg).rows[number].ids.__setitem__(place, 499)


def put(leg: str, **counters: object) -> Spoil:
    return lambda builder: builder.leg(leg).after.update(counters)  # type: ignore[arg-type] # spoiled on purpose


def samples(leg: str, data: bytes | None) -> Spoil:
    return lambda builder: setattr(builder.leg(leg), "telemetry", data)


def left(name: str, what: object) -> Spoil:
    def spoil(builder: RunBuilder) -> None:
        builder.edits["legs/03-B2/postflight.json"] = json_edit(lambda document: document.update({name: [what]}))

    return spoil


def fast(builder: RunBuilder) -> None:
    for row in builder.leg("B2").rows:
        row.gap_ns = 900_000


FAILURES: list[tuple[Gate, tuple[str, ...], Spoil]] = [
    (DEGENERATE, WITHOUT_ORACLE, fill("B2", 1, [7])),
    (DEGENERATE, WITHOUT_ORACLE, fill("A1", 0, [7, 8, 9])),
    (LONG, WITHOUT_ORACLE, token("B2", 1, 40)),
    (ROLLOVER, WITHOUT_ORACLE, token("B2", 1, 40)),
    (MOVING, WITHOUT_ORACLE, token("B2", 1, 40)),
    (MOVING, WITHOUT_ORACLE, lambda b: (token("B1", 1, 40)(b), token("B2", 1, 41)(b))),
    (SHAPE, (), put("B2", accepted_per_position=[26, 25, 25, 24])),
    (ACCEPTANCE, (), put("B1", accepted_tokens=40, accepted_per_position=[30, 6, 3, 1])),
    (CAPACITY, (), put("A2", cache_config={"num_gpu_blocks": "99", "block_size": "16"})),
    (CAPACITY, (), put("B2", cache_config={"num_gpu_blocks": "101", "block_size": "16"})),
    (MEMORY, (), samples("B1", sample(4097))),
    (POSTFLIGHT, (), left("killed", 60)),
    (ROOFLINE, (), fast),
]  # fmt: skip
LACKING: list[tuple[Gate, Spoil]] = [
    ({**LONG, "min_boundaries": 2}, lambda _: None),
    ({**ROLLOVER, "min_prompt_tokens": 7}, lambda _: None),
    ({**SHAPE, "min_positions": 5}, lambda _: None),
    (CAPACITY, put("A2", **NO_CACHE)),
    (CAPACITY, put("A2", cache_config={"num_gpu_blocks": "None", "block_size": "16"})),
    (MEMORY, samples("B1", None)),
    (MEMORY, samples("B1", b"{}\n")),
    (MEMORY, samples("B1", b"not json\n")),
    (MEMORY, samples("B1", sample(4000) + sample(True))),
]  # fmt: skip


LEGS = ("01-A1", "02-B1", "03-B2", "04-A2")
WIRE = {f"legs/{leg}/wire/{row:02d}.{end}" for leg in LEGS for row in (1, 2) for end in ("bin", "reads.jsonl")}
LOST: list[tuple[Gate, set[str]]] = [
    (DEGENERATE, WIRE),
    (LONG, {"packet/inputs/oracle.json"}),
    (ROLLOVER, {"packet/inputs/oracle.json"}),
    (MOVING, {"packet/inputs/oracle.json"}),
    (SHAPE, {"legs/02-B1/metrics-after.prom"}),
    (ACCEPTANCE, {"legs/02-B1/metrics-after.prom"}),
    (CAPACITY, {"legs/02-B1/metrics-after.prom", "legs/02-B1/server.log"}),
    (POSTFLIGHT, {"legs/02-B1/postflight.json"}),
    (ROOFLINE, WIRE),
]


def results(verdict: Verdict, wanted: GateResult) -> list[str]:
    return [gate.kind for gate in verdict.gates if gate.result is wanted]


def test_a_sound_run_passes_all_of_them_by_both_analyzers(tmp_path: Path) -> None:
    one, other = both(registered(GATES), tmp_path)
    assert [gate.reason for gate in one.gates] == [""] * len(one.gates)
    assert len(results(one, GateResult.PASSED)) == len(one.gates) == 11 + len(GATES)
    assert disagreements(one, other) == ()
    assert one.verdict is VerdictKind.EXPLORATORY_PASS


@pytest.mark.parametrize(("gate", "without", "spoil"), FAILURES)
def test_one_spoiled_thing_fails_exactly_its_gate_by_both(
    gate: Gate, without: tuple[str, ...], spoil: Spoil, tmp_path: Path
) -> None:
    builder = registered((gate,), without)
    spoil(builder)
    verdicts = both(builder, tmp_path)
    assert [results(verdict, GateResult.FAILED) for verdict in verdicts] == [[gate["kind"]], [gate["kind"]]]
    assert disagreements(*verdicts) == ()


@pytest.mark.parametrize(("gate", "spoil"), LACKING)
def test_what_cannot_be_looked_at_is_not_evaluated_by_either(gate: Gate, spoil: Spoil, tmp_path: Path) -> None:
    builder = registered((gate,))
    spoil(builder)
    one, other = both(builder, tmp_path)
    assert results(one, GateResult.NOT_EVALUATED) == results(other, GateResult.NOT_EVALUATED)
    assert set(results(one, GateResult.NOT_EVALUATED)) - {"decision", "pair", "control_near"} == {gate["kind"]}
    assert one.verdict is other.verdict is VerdictKind.INVALID


@pytest.mark.parametrize(("gate", "removed"), LOST, ids=[str(gate["kind"]) for gate, _ in LOST])
def test_lost_evidence_is_not_evaluated_by_either(gate: Gate, removed: set[str], tmp_path: Path) -> None:
    builder = registered((gate,))
    builder.removed = removed
    for verdict in both(builder, tmp_path):
        assert gate["kind"] in results(verdict, GateResult.NOT_EVALUATED)


@pytest.mark.parametrize("gate", [SHAPE, ACCEPTANCE], ids=["survival_shape", "acceptance"])
def test_a_run_that_never_speculates_is_not_evaluated_by_either(gate: Gate, tmp_path: Path) -> None:
    builder = registered((gate,))
    treated = {"argument": "--fast", "control": None, "candidate": True, "proof": PROOF}
    changes = builder.packet["preregistration"]
    assert isinstance(changes, dict)
    builder.packet = {"preregistration": changes | {"treatment": treated}}
    for verdict in both(builder, tmp_path):
        assert gate["kind"] in results(verdict, GateResult.NOT_EVALUATED)


def test_a_row_beyond_the_oracle_equals_nothing(tmp_path: Path) -> None:
    builder = registered((MOVING, LONG), WITHOUT_ORACLE)
    builder.removed = {f"legs/03-B2/wire/02.{end}" for end in ("bin", "reads.jsonl")}
    one, other = both(builder, tmp_path)
    assert results(one, GateResult.FAILED) == results(other, GateResult.FAILED)
    assert "moving_difference" in results(one, GateResult.FAILED)


def test_nothing_accepted_at_the_first_position_fails_the_shape(tmp_path: Path) -> None:
    builder = registered((SHAPE,))
    put("B2", accepted_per_position=[0, 0, 0, 0], accepted_tokens=0)(builder)
    one, other = both(builder, tmp_path)
    assert {"survival_shape", "accounting"} <= set(results(one, GateResult.FAILED))
    assert results(one, GateResult.FAILED) == results(other, GateResult.FAILED)


def watched(before_bytes: int, after_bytes: int, vendor: str = "nvidia") -> RunBuilder:
    """A run on a host that watches one card, whose memory each start gives back or not."""
    builder = registered((POSTFLIGHT,))
    cards = {"vendor": vendor, "count": 1, "identities": "discover"}
    builder.packet |= {"host": {"devices": {"idle_cards": cards, "memory_slack_mib": 64}}}
    left = [{"identity": "GPU-1", "before_bytes": before_bytes, "after_bytes": after_bytes}]
    for leg in LEGS if after_bytes else ():
        edit = json_edit(lambda document: document.update(device_memory=left))
        builder.edits[f"legs/{leg}/postflight.json"] = edit
    return builder


@pytest.mark.parametrize(
    ("builder", "result"),
    [
        (watched(5 << 20, 69 << 20), GateResult.PASSED),
        (watched(5 << 20, (69 << 20) + 1), GateResult.FAILED),
        (watched(5 << 20, 0), GateResult.NOT_EVALUATED),
        (watched(5 << 20, 0, "cpu"), GateResult.PASSED),
    ],
    ids=["within slack", "kept", "not recorded", "cpu"],
)
def test_memory_of_watched_cards_must_be_back(builder: RunBuilder, result: GateResult, tmp_path: Path) -> None:
    for verdict in both(builder, tmp_path):
        assert [gate.result for gate in verdict.gates if gate.kind == "postflight"] == [result]


def test_a_moving_difference_names_what_is_suspected(tmp_path: Path) -> None:
    builder = registered((MOVING,), WITHOUT_ORACLE)
    token("B2", 1, 40)(builder)
    one, _ = both(builder, tmp_path)
    (gate,) = (gate for gate in one.gates if gate.kind == "moving_difference")
    assert "never set" in gate.reason
    assert "none in B1; token 40 in B2" in gate.reason


def test_a_degenerate_row_keeps_speed_from_being_looked_at(tmp_path: Path) -> None:
    builder = registered((DEGENERATE,), WITHOUT_ORACLE)
    fill("B2", 1, [7])(builder)
    for verdict in both(builder, tmp_path):
        assert {"pair", "control_near", "decision"} <= set(results(verdict, GateResult.NOT_EVALUATED))
        assert verdict.verdict is VerdictKind.NEGATIVE_OR_INCONCLUSIVE


def test_a_capacity_that_the_server_states_counts_before_its_blocks(tmp_path: Path) -> None:
    builder = registered((CAPACITY,))
    for leg in builder.legs:
        leg.after["cache_config"] = {"num_gpu_blocks": "6446", "block_size": "64", "kv_cache_size_tokens": "136802"}
    for verdict in both(builder, tmp_path):
        (gate,) = (gate for gate in verdict.gates if gate.kind == "kv_capacity")
        assert [figure.value for figure in gate.figures] == ["136802"] * 4


def test_capacity_is_read_from_the_log_where_no_metric_says_it(tmp_path: Path) -> None:
    builder = registered(({**CAPACITY, "min_tokens": 110_990},))
    pattern = r"KV cache size: (?P<tokens>[0-9,]{1,24}) tokens"
    said = builder.vocabulary.model_dump(mode="json") | {"kv_capacity_pattern": pattern}
    builder.vocabulary = EngineVocabulary.from_json(canonical_json(said), "engine")
    for leg in builder.legs:
        leg.before["cache_config"] = leg.after["cache_config"] = None
        leg.log += b"rank 0: KV cache size: 110,995 tokens\nrank 1: KV cache size: 110,990 tokens\n"
    one, other = both(builder, tmp_path)
    assert disagreements(one, other) == ()
    (gate,) = (gate for gate in one.gates if gate.kind == "kv_capacity")
    assert [figure.value for figure in gate.figures] == ["110990"] * 4
    assert gate.result is GateResult.PASSED


ODD_COUNTERS: list[tuple[Gate, Spoil]] = [
    (CAPACITY, lambda b: b.leg("A2").before.update(draft_tokens=-1.0)),  # one side cannot be read, the other can
    (SHAPE, lambda b: b.leg("B2").before.update(drafts=1000.0)),  # fewer rounds after than before
    (SHAPE, lambda b: b.leg("B2").before.update(accepted_per_position=[0.0, 0.0, 0.0, 0.0, 9.0])),  # one is gone
]


@pytest.mark.parametrize(("gate", "spoil"), ODD_COUNTERS, ids=["half-readable", "shrinking", "gone"])
def test_counters_that_make_no_sense_are_told_alike_by_both(gate: Gate, spoil: Spoil, tmp_path: Path) -> None:
    builder = registered((gate,))
    spoil(builder)
    one, other = both(builder, tmp_path)
    assert disagreements(one, other) == ()
    assert one.verdict is not VerdictKind.EXPLORATORY_PASS


LEFT: list[tuple[str, object]] = [
    ("processes_left", 60),
    ("listeners_left", {"address": "0100007F:4650", "inode": 77, "owner_pids": [60]}),
    ("shared_memory_left", "psm_1"),
]


@pytest.mark.parametrize(("name", "what"), LEFT, ids=[name for name, _ in LEFT])
def test_whatever_is_left_fails_the_postflight_beside_the_identity_of_the_start(
    name: str, what: object, tmp_path: Path
) -> None:
    builder = registered((POSTFLIGHT,))
    left(name, what)(builder)
    verdicts = both(builder, tmp_path)
    assert [results(verdict, GateResult.FAILED) for verdict in verdicts] == [["identity", "postflight"]] * 2
    assert disagreements(*verdicts) == ()


@pytest.mark.parametrize("ending", [b"abort", b"error"])
def test_a_request_that_ended_badly_fails_the_cold_gate_alone(ending: bytes, tmp_path: Path) -> None:
    builder = registered((POSTFLIGHT,))

    def spoil(data: bytes) -> bytes:
        well, badly = b'finished_reason="length"} ', b'finished_reason="' + ending + b'"} '
        return data.replace(well + b"2.0", well + b"1.0").replace(badly + b"0.0", badly + b"1.0")

    builder.edits["legs/03-B2/metrics-after.prom"] = spoil
    verdicts = both(builder, tmp_path)
    assert [results(verdict, GateResult.FAILED) for verdict in verdicts] == [["cold"], ["cold"]]
    assert disagreements(*verdicts) == ()
