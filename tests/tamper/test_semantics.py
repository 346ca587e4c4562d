"""Sealed runs whose seal holds and whose records contradict each other: each fault is `invalid`, and named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labctl.analyze.files import OpenRunFiles
from labctl.analyze.load import load_evidence
from labctl.analyze.sealed_run import analyze_run
from labctl.errors import BrokenEvidence
from labctl.frozen import canonical_json
from labctl.packet.tool import analyzer_identity
from labctl.records.run import AbortCause, Outcome, OutcomeKind, PhaseAnswer
from labctl.records.verdict import GateResult, Verdict, VerdictKind
from tests.fakes.run_builder import RunBuilder, json_edit

Spoil = Callable[[RunBuilder], object]


def document(path: str, **changes: object) -> Spoil:
    def spoil(builder: RunBuilder) -> None:
        builder.edits[path] = json_edit(lambda value: value.update(changes))

    return spoil


def nested(path: str, key: str, **changes: object) -> Spoil:
    def change(value: dict[str, Any]) -> None:
        value[key] |= changes

    def spoil(builder: RunBuilder) -> None:
        builder.edits[path] = json_edit(change)

    return spoil


def raw(path: str, edit: Callable[[bytes], bytes]) -> Spoil:
    return lambda builder: builder.edits.__setitem__(path, edit)


def wire_line(event: str, **changes: object) -> Callable[[bytes], bytes]:
    """Change every line of one event in a row's stamps."""

    def edit(data: bytes) -> bytes:
        lines = [json.loads(line) for line in data.splitlines()]
        return b"".join(canonical_json(line | (changes if line["event"] == event else {})) for line in lines)

    return edit


def journal_line(number: int, **changes: object) -> Callable[[bytes], bytes]:
    def edit(data: bytes) -> bytes:
        lines = [json.loads(line) for line in data.splitlines()]
        lines[number] |= changes
        return b"".join(map(canonical_json, lines))

    return edit


LEG = "legs/03-B2"
SPOILS: list[tuple[Spoil, str]] = [
    (document(f"{LEG}/order.json", nonce="1" * 32), "order.json: nonce"),
    (document(f"{LEG}/order.json", index=2), "order.json: index"),
    (document(f"{LEG}/order.json", boot_id="other"), "order.json: boot"),
    (document(f"{LEG}/order.json", marker_sha256="1" * 64), "order.json: marker"),
    (document(f"{LEG}/order.json", packet_kind="rehearsal"), "order.json: packet kind"),
    (document(f"{LEG}/order.json", argv=["/opt/python", "-m", "other"]), "order.json: argv"),
    (nested(f"{LEG}/order.json", "paths", leg="/runs/other/data/legs/03-B2"), "order.json: folder"),
    (nested(f"{LEG}/order.json", "environment", LD_PRELOAD="/x.so"), "order.json: environment"),
    (nested(f"{LEG}/order.json", "requests", seed=2), "order.json: seed"),
    (nested(f"{LEG}/order.json", "requests", max_tokens=102), "order.json: max_tokens"),
    (nested(f"{LEG}/order.json", "requests", prompts=[{"id": "p01", "text": "other", "messages": None}]), "prompts"),
    (nested(f"{LEG}/order.json", "limits", request_timeout_s=5), "order.json: request_timeout_s"),
    (nested(f"{LEG}/order.json", "engine", is_stand_in=False), "order.json: engine"),
    (document(f"{LEG}/LEG_STARTED.json", order_sha256="1" * 64), "LEG_STARTED.json: order digest"),
    (document(f"{LEG}/exit.json", rows_completed=1), "exit.json: completed rows"),
    (document(f"{LEG}/exit.json", leg="B1"), "exit.json: leg"),
    (document(f"{LEG}/exit.json", cause="stream"), "exit.json: cause"),
    (document(f"{LEG}/postflight.json", log_bytes=3), "postflight.json: log bytes"),
    (raw(f"{LEG}/server.log", lambda data: data + b"one more line\n"), "postflight.json: log digest"),
    (raw(f"{LEG}/wire/01.reads.jsonl", wire_line("opened", prompt_id="p09")), "wire/01: prompt"),
    (raw(f"{LEG}/wire/01.reads.jsonl", wire_line("opened", row=3)), "rows 1 to 2"),
    (raw(f"{LEG}/wire/01.reads.jsonl", wire_line("opened", port=1)), "wire/01: address"),
    (raw(f"{LEG}/wire/01.reads.jsonl", wire_line("connected", peer_port=1)), "wire/01: peer"),
    (raw(f"{LEG}/wire/01.reads.jsonl", wire_line("sent", bytes_latin1="GET / HTTP/1.1\r\n\r\n")), "request body"),
    (raw(f"{LEG}/wire/01.reads.jsonl", lambda data: data.replace(b"/v1/comp", b"/v1/else")), "request line"),
    (raw(f"{LEG}/wire/01.reads.jsonl", lambda data: data.replace(b"prompt 1", b"prompt 7")), "request body"),
    (raw(f"{LEG}/wire/01.reads.jsonl", lambda data: data.replace(b'"length":2', b'"length": 2', 1)), "RECORD_FORM"),
    (raw(f"{LEG}/wire/01.bin", lambda data: data + b"x"), "RECORD_FORM"),
    (raw(f"{LEG}/process.json", lambda data: data.replace(b"{", b"{ ", 1)), "canonical"),
    (raw(f"{LEG}/process.json", lambda _: b"{}\n"), "RECORD_FORM"),
    (raw(f"{LEG}/metrics-after.prom", lambda _: b"\xff\n"), "Prometheus"),
    (raw(f"{LEG}/leg-manifest-sha256.txt", lambda data: data.replace(b"server.log", b"server.lag")), "DIGEST_MISMATCH"),
    (lambda builder: builder.removed.add(f"{LEG}/process.json"), "MISSING_FILE"),
    (lambda builder: builder.removed.add(f"{LEG}/maps.txt"), "MISSING_FILE"),
    (lambda builder: builder.removed.add(f"{LEG}/leg-manifest-sha256.txt"), "B2: expected a closed leg"),
    (lambda builder: builder.removed.add(f"{LEG}/wire/02.bin"), "MISSING_FILE"),
    (raw("journal.jsonl", journal_line(3, detail="other")), "journal.jsonl:5"),
    (raw("journal.jsonl", journal_line(3, mono_ns=99)), "journal.jsonl:5"),
    (raw("journal.jsonl", lambda data: data + data.splitlines(keepends=True)[-1]), "journal.jsonl:12"),
    (raw("journal.jsonl", lambda data: b"".join(data.splitlines(keepends=True)[:-1])), "last event"),
    (raw("journal.jsonl", lambda data: data[:-5]), "journal.jsonl"),
    (document("outcome.json", legs_closed=["A1", "B1"]), "closed legs"),
    (raw("packet/prereg.yaml", lambda data: data + b"\n"), "prereg.yaml"),
    (raw("packet/engine.json", lambda data: data.replace(b"/health", b"/sick")), "engine.json"),
    (raw("packet/inputs/oracle.json", lambda data: data.replace(b"teacher-run", b"another-run")), "oracle.json"),
    (raw("packet/inputs/oracle.json", lambda _: b"{}\n"), "oracle.json"),
    (document("packet/marker.copy.json", order=["B1", "A1"]), "order of the marker"),
    (document("packet/marker.copy.json", git_commit="1" * 40), "commit of the marker"),
    (document("phase1/labctl.json", reasons=[], **{"continue": False}), "phase1"),
    (document("phase1/labctl.json", legs={}), "phase1"),
    (lambda builder: builder.removed.add("phase1/labctl.json"), "analyzers"),
]  # fmt: skip


def judged(builder: RunBuilder, folder: Path) -> Verdict:
    return analyze_run(builder.seal(folder), analyzer_identity())


@pytest.mark.parametrize(("spoil", "told"), SPOILS)
def test_a_sealed_contradiction_is_invalid_and_named(spoil: Spoil, told: str, tmp_path: Path) -> None:
    builder = RunBuilder()
    spoil(builder)
    verdict = judged(builder, tmp_path)
    assert verdict.verdict is VerdictKind.INVALID
    assert any(told in line for line in verdict.because), verdict.because


@pytest.mark.parametrize("name", ["packet/engine.json", "packet/inputs/suite.yaml"])
def test_a_run_without_what_everything_rests_on_cannot_be_judged(name: str, tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.removed.add(name)
    run = builder.seal(tmp_path)
    with pytest.raises(BrokenEvidence):
        analyze_run(run, analyzer_identity())


def test_a_phase_that_says_otherwise_when_judged_again_is_invalid(tmp_path: Path) -> None:
    def flatter(answer: PhaseAnswer) -> PhaseAnswer:
        return PhaseAnswer.model_validate(answer.model_dump(by_alias=True) | {"continue": True})

    builder = RunBuilder(phase_answer=flatter)
    builder.leg("B1").rows[1].gap_ns = 2_100_000
    verdict = judged(builder, tmp_path)
    assert verdict.verdict is VerdictKind.INVALID
    assert any("judged again" in line for line in verdict.because)


def test_a_leg_that_the_journal_never_closes_is_a_contradiction(tmp_path: Path) -> None:
    builder = RunBuilder()
    closed = ("A1", "B1", "B2")
    builder.outcome = Outcome(outcome=OutcomeKind.PHASE_STOPPED, cause=None, detail=(), legs_closed=closed)
    builder.edits["journal.jsonl"] = lambda data: b"".join(data.splitlines(keepends=True)[:8])
    verdict = judged(builder, tmp_path)
    assert any("data/legs/04-A2: expected no folder" in line for line in verdict.because), verdict.because


def test_a_request_that_was_cut_off_is_no_contradiction_of_its_own(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.leg("B2").rows[1].ended = "timeout"

    def cut(data: bytes) -> bytes:
        lines = [json.loads(line) for line in data.splitlines()]
        last = next(line for line in reversed(lines) if line["event"] == "sent")
        last["bytes_latin1"] = last["bytes_latin1"][:20]
        return b"".join(map(canonical_json, lines))

    builder.edits[f"{LEG}/wire/02.reads.jsonl"] = cut
    verdict = judged(builder, tmp_path)
    assert not any("request body" in line for line in verdict.because)
    failed = {gate.id for gate in verdict.gates if gate.result is GateResult.FAILED}
    assert {"complete_rows", "pair-decode"} <= failed


def test_the_phase_answer_names_the_closed_legs_and_why_they_do_not_pass(tmp_path: Path) -> None:
    builder = RunBuilder(legs_written=2)
    builder.leg("B1").log += b"not compiled\n"
    builder.write(tmp_path)
    answer = PhaseAnswer.from_json((builder.root / "data/phase1/labctl.json").read_bytes(), "answer")
    assert (answer.may_continue, sorted(answer.legs)) == (False, ["01-A1", "02-B1"])
    assert [line.split(":")[0] for line in answer.reasons] == ["gate clean_log failed"]


@pytest.mark.parametrize("name", ["server.log", "wire/01.bin", "metrics-after.prom"])
def test_a_leg_that_changed_after_it_closed_is_seen_at_the_phase_stop(name: str, tmp_path: Path) -> None:
    builder = RunBuilder(legs_written=2)
    builder.write(tmp_path)
    path = builder.root / "data/legs/01-A1" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    conflicts = load_evidence(OpenRunFiles(builder.root)).conflicts
    assert any(problem.where == f"data/legs/01-A1/{name}" for problem in conflicts)


def test_an_aborted_run_may_end_in_a_torn_line_and_half_a_leg(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False, legs_written=3)
    builder.removed |= {f"{LEG}/leg-manifest-sha256.txt", f"{LEG}/exit.json", f"{LEG}/postflight.json"}
    builder.edits[f"{LEG}/wire/02.reads.jsonl"] = lambda data: data[:700]
    keep_torn: Callable[[bytes], bytes] = lambda data: b"".join(data.splitlines(keepends=True)[:6]) + b'{"deta'  # noqa: E731
    builder.edits["journal.jsonl"] = keep_torn
    builder.outcome = Outcome(
        outcome=OutcomeKind.ABORTED, cause=AbortCause.CONTROLLER_KILLED, detail=("killed",), legs_closed=("A1", "B1")
    )
    verdict = judged(builder, tmp_path)
    assert verdict.verdict is VerdictKind.INFRASTRUCTURE_ABORT, verdict.because
