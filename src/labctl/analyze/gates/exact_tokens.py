"""Gates `exact_tokens` and `cross_leg_exact`: token ids, text and finish reason, row by row."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.findings import Findings
from labctl.analyze.stream import StreamRow
from labctl.prereg.gate_kinds import ExactTokens, gate_id
from labctl.prereg.model import Arm
from labctl.prereg.suite import OracleRow
from labctl.records.verdict import GateOutcome

MAX_CYCLE_TOKENS = 16
MIN_CYCLES = 3
MIN_DEGENERATE_TOKENS = 8
NO_ROW = "no row was measured"
TOKENS, TEXT, FINISH, PROMPT = "token ids", "text digest", "finish reason", "prompt token ids digest"
NO_TOKENS = "the teacher holds no token ids: gate exact_text compares what it holds"


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """What a row must be equal to."""

    source: str
    token_ids: tuple[int, ...]
    text_sha256: str
    finish_reason: str | None
    prompt_ids_sha256: str | None
    untold: frozenset[str] = frozenset()
    """What the teacher does not say, and so cannot be compared."""


def judge_exact_tokens(evidence: RunEvidence, gate: ExactTokens) -> GateOutcome:
    """Judge every row of every start against the teacher, or against the first control start."""
    findings = Findings(gate_id(gate), gate.kind)
    if not has_rows(evidence.legs):
        findings.lacks(NO_ROW)
        return findings.outcome()
    expected = expected_rows(evidence)
    if expected is None:
        findings.lacks("neither a teacher nor a first control start is there")
        return findings.outcome()
    for leg in evidence.legs:
        compare_rows(findings, leg, expected)
    add_row_counts(findings, evidence.legs, expected)
    findings.figures.append(figure("degenerate_rows", "", _degenerate_rows(evidence.legs), "rows"))
    return findings.outcome()


def has_rows(legs: Iterable[LegEvidence]) -> bool:
    """Whether any start measured anything: nothing is equal to nothing, and that proves nothing."""
    return any(leg.rows for leg in legs)


def expected_of(leg: LegEvidence) -> tuple[ExpectedRow, ...]:
    """A start as what another must be equal to."""
    return tuple(
        ExpectedRow(leg.name, row.token_ids, row.text_sha256, row.finish_reason, row.prompt_ids_sha256)
        for row in leg.rows
    )


def compare_rows(findings: Findings, leg: LegEvidence, expected: tuple[ExpectedRow, ...]) -> None:
    """Check every row of a start; rows that are missing on either side miss."""
    findings.equal("rows", leg.name, len(expected), len(leg.rows))
    for row, wanted in zip(leg.rows, expected, strict=False):
        compare_row(findings, f"{leg.name} row {row.row}", row, wanted)


def add_row_counts(findings: Findings, legs: Iterable[LegEvidence], expected: tuple[ExpectedRow, ...]) -> None:
    """Keep how many rows of each start are exact."""
    for leg in legs:
        exact = sum(is_exact(row, wanted) for row, wanted in zip(leg.rows, expected, strict=False))
        findings.figures.append(figure("exact_rows", leg.name, exact, f"of {len(expected)} rows"))


def is_exact(row: StreamRow, wanted: ExpectedRow) -> bool:
    """Whether a row is equal to what is expected; a row without tokens equals nothing."""
    return bool(row.token_ids) and row.is_whole and not list(differences(row, wanted))


def first_difference(observed: tuple[int, ...], expected: tuple[int, ...]) -> int | None:
    """The first position (0-based) at which two token lists differ, or None where they are equal."""
    if observed == expected:
        return None
    for position, (one, other) in enumerate(zip(observed, expected, strict=False)):
        if one != other:
            return position
    return None if len(observed) == len(expected) else min(len(observed), len(expected))


def is_degenerate(token_ids: tuple[int, ...]) -> bool:
    """Whether one token or a short cycle fills the row."""
    count = len(token_ids)
    if count < MIN_DEGENERATE_TOKENS:
        return False
    cycles = range(1, min(MAX_CYCLE_TOKENS, count // MIN_CYCLES) + 1)
    return any(token_ids[cycle:] == token_ids[:-cycle] for cycle in cycles)


def moving_differences(evidence: RunEvidence) -> tuple[str, ...]:
    """Rows whose first difference from the expected tokens moves between equal starts: state, or unset memory."""
    expected = expected_rows(evidence) or ()
    lines = []
    for arm in Arm:
        legs = [leg for leg in evidence.arm(arm) if len(leg.rows) == len(expected)]
        for place, wanted in enumerate(expected if not is_without_tokens(expected) else ()):
            found = {first_difference(leg.rows[place].token_ids, wanted.token_ids) for leg in legs}
            if len(found) > 1:
                lines.append(
                    f"arm {arm} row {place + 1}: the first difference moves between equal starts; suspect state that "
                    "is carried over, or memory that was never set"
                )
    return tuple(lines)


def expected_rows(evidence: RunEvidence) -> tuple[ExpectedRow, ...] | None:
    """What every start must be equal to: the teacher's rows, or those of the first control start."""
    if evidence.packet.preregistration.oracle == "first_control":
        controls = evidence.arm(Arm.CONTROL)
        return expected_of(controls[0]) if controls else None
    return None if evidence.oracle is None else tuple(_of_teacher(row) for row in evidence.oracle.rows)


def _of_teacher(row: OracleRow) -> ExpectedRow:
    told = {
        TOKENS: row.token_ids,
        TEXT: row.text_sha256,
        FINISH: row.finish_reason,
        PROMPT: row.prompt_token_ids_sha256,
    }
    return ExpectedRow(
        source="teacher",
        token_ids=row.token_ids or (),
        text_sha256=row.text_sha256 or "",
        finish_reason=row.finish_reason,
        prompt_ids_sha256=row.prompt_token_ids_sha256,
        untold=frozenset(what for what, value in told.items() if value is None),
    )


def is_without_tokens(expected: Iterable[ExpectedRow]) -> bool:
    """Whether the teacher leaves the token ids of a row untold."""
    return any(TOKENS in wanted.untold for wanted in expected)


def compare_row(findings: Findings, where: str, row: StreamRow, wanted: ExpectedRow) -> None:
    """Check one row, and name its first difference; without token ids to compare with, that is a gap."""
    if TOKENS in wanted.untold:
        findings.lacks(NO_TOKENS)
        return
    findings.holds("token ids", where, ("at least one", "none"), is_met=bool(row.token_ids) and bool(wanted.token_ids))
    position = first_difference(row.token_ids, wanted.token_ids)
    if position is not None:
        sides = (_token(wanted.token_ids, position), _token(row.token_ids, position))
        findings.holds(f"token {position} against {wanted.source}", where, sides, is_met=False)
    for what, expected, observed in differences(row, wanted):
        if what != TOKENS:
            findings.equal(f"{what} against {wanted.source}", where, expected, observed)


def differences(row: StreamRow, wanted: ExpectedRow) -> Iterator[tuple[str, object, object]]:
    """What the teacher says and the row does not bear out: what it is, expected, observed."""
    pairs = (
        (TOKENS, wanted.token_ids, row.token_ids),
        (TEXT, wanted.text_sha256, row.text_sha256),
        (FINISH, wanted.finish_reason, row.finish_reason),
        (PROMPT, wanted.prompt_ids_sha256, row.prompt_ids_sha256),
    )
    return (one for one in pairs if one[0] not in wanted.untold and one[1] != one[2])


def _token(token_ids: tuple[int, ...], position: int) -> str:
    return f"token {token_ids[position]}" if position < len(token_ids) else f"the end after {len(token_ids)} tokens"


def _degenerate_rows(legs: Iterable[LegEvidence]) -> int:
    return sum(is_degenerate(row.token_ids) for leg in legs for row in leg.rows)
