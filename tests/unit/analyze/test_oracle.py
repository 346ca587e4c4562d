"""A teacher is what the target says alone, in a start that is sealed and whole."""

from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.analyze.oracle import make_oracle, without_tokens
from labctl.errors import BrokenEvidence, NotFound
from labctl.prereg.oracle_file import load_oracle
from labctl.records.leg import StopCause
from labctl.records.run import AbortCause, Outcome, OutcomeKind
from tests.fakes.run_builder import RunBuilder, json_edit

Spoil = Callable[[RunBuilder], object]


def test_a_teacher_holds_what_the_first_start_answered(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.leg("B1").rows[0].ids[3] = 499
    run = builder.seal(tmp_path)
    teacher = make_oracle(run)
    assert [list(row.token_ids or ()) for row in teacher.rows] == [row.ids for row in builder.leg("A1").rows]
    assert teacher.origin.model_dump()["seal_sha256"] == run.seal_sha256
    assert {row.finish_reason for row in teacher.rows} == {"length"}
    (tmp_path / "teacher.json").write_bytes(teacher.canonical())
    assert load_oracle(tmp_path / "teacher.json").model == teacher


def test_a_portable_teacher_of_text_keeps_no_token(tmp_path: Path) -> None:
    teacher = make_oracle(RunBuilder(stops=False).seal(tmp_path))
    texts = without_tokens(teacher)
    assert [row.text_sha256 for row in texts.rows] == [row.text_sha256 for row in teacher.rows]
    assert b"token_ids" not in texts.canonical()
    (tmp_path / "texts.json").write_bytes(texts.canonical())
    assert load_oracle(tmp_path / "texts.json").model == texts


def speculating(builder: RunBuilder) -> None:
    builder.leg("A1").after.update(drafts=10, draft_tokens=40, accepted_tokens=5, accepted_per_position=[5, 0, 0, 0])


def without_counters(builder: RunBuilder) -> None:
    builder.vocabulary = builder.vocabulary.model_validate(
        builder.vocabulary.model_dump(by_alias=True) | {"off_when_absent": ()}
    )


def aborted(builder: RunBuilder) -> None:
    builder.leg("B1").exit_cause = StopCause.STREAM
    builder.legs_written = 2
    builder.outcome = Outcome(
        outcome=OutcomeKind.ABORTED, cause=AbortCause.LEG_FAILED, detail=("it broke",), legs_closed=("A1",)
    )


def cut(builder: RunBuilder) -> None:
    builder.leg("A1").rows[1].finish = None


REFUSED: list[tuple[Spoil, str]] = [
    (speculating, "a start of the target alone"),
    (without_counters, "an unknown number of rounds"),
    (aborted, "a completed run"),
    (cut, "a complete row"),
]


@pytest.mark.parametrize(("spoil", "said"), REFUSED)
def test_what_is_no_whole_start_of_the_target_alone_teaches_nothing(spoil: Spoil, said: str, tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    spoil(builder)
    with pytest.raises(NotFound, match=said):
        make_oracle(builder.seal(tmp_path))


def test_a_control_that_speculates_is_no_target_alone(tmp_path: Path) -> None:
    said = {"argument": "--other", "control": None, "candidate": "1", "proof": PROOF}
    builder = RunBuilder(stops=False)
    command = [*builder.frozen_packet().preregistration.service.command, "--speculative-config", DRAFTS]
    builder.packet = {"preregistration": {"treatment": said, "service": {"command": command}}}
    with pytest.raises(NotFound, match="asks for speculation"):
        make_oracle(builder.seal(tmp_path))


PROOF = {"counter": "drafts", "control": "absent_or_zero", "candidate": "positive"}
DRAFTS = '{"method":"ngram","num_speculative_tokens":4}'


def test_a_run_whose_records_contradict_each_other_teaches_nothing(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.edits["legs/01-A1/exit.json"] = json_edit(lambda document: document.update(leg="B1"))
    with pytest.raises(BrokenEvidence):
        make_oracle(builder.seal(tmp_path))
