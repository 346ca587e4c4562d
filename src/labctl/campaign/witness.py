"""The ledger as outside witness of a seal: a run that was changed and sealed again has another digest than its line."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from labctl.campaign.lookup import known_authorizations
from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import read_regular
from labctl.errors import BrokenEvidence, NotFound, Problem
from labctl.ledger import read_ledger
from labctl.packet.git_command import find_repository
from labctl.records.marker import LedgerLine
from labctl.rundir import SEAL, AuthorizationPaths
from labctl.seal.verify import MAX_SEAL_BYTES, SealedRun

MARKER_SUBJECT = 3


class Witness(StrEnum):
    """What the ledgers that are known here say of a run."""

    AGREES = "agrees"
    NONE = "none"


def authorizations_here(folder: Path) -> tuple[AuthorizationPaths, ...]:
    """The authorization roots of the repository that holds a folder; none outside of one."""
    try:
        return known_authorizations(find_repository(folder))
    except NotFound:
        return ()


def require_witnessed(run: SealedRun, authorizations: Iterable[AuthorizationPaths]) -> Witness:
    """Hold the seal and the marker of a run against every ledger that has a line about it.

    Raises:
        BrokenEvidence: a ledger names another seal or marker, or no seal (RECORD_CONFLICT), or is broken.
    """
    known = [(root, lines) for root in authorizations if (lines := _lines_about(root, run.run_dir))]
    problems = [problem for root, lines in known for problem in _conflicts(run, root.ledger, lines)]
    if problems:
        raise BrokenEvidence(problems)
    return Witness.AGREES if known else Witness.NONE


def is_foreign_seal(authorization: AuthorizationPaths, run: Path, run_dir: str) -> bool:
    """Whether a ledger has a line for the seal of a run, and none for the seal that lies there."""
    said = {line.digest for line in _lines_about(authorization, run_dir) if line.event == "sealed"}
    return bool(said) and sha256_hex(read_regular(run / SEAL, limit_bytes=MAX_SEAL_BYTES)) not in said


def _lines_about(authorization: AuthorizationPaths, run_dir: str) -> tuple[LedgerLine, ...]:
    return tuple(line for line in read_ledger(authorization.ledger) if line.run_dir == run_dir)


def _conflicts(run: SealedRun, ledger: Path, lines: tuple[LedgerLine, ...]) -> Iterator[Problem]:
    subjects = run.statement.subject
    found = {"sealed": run.seal_sha256, "consumed": subjects[MARKER_SUBJECT].digest.sha256}
    for line in lines:
        where = f"line {line.seq + 1} of {ledger}"
        if line.digest != found[line.event]:
            what = {"sealed": "the seal", "consumed": "the marker"}[line.event]
            yield _conflict(f"{run.run_dir}: {what}", f"{line.digest} as in {where}", found[line.event])
    if all(line.event != "sealed" for line in lines):
        yield _conflict(f"{run.run_dir}: the seal", f"a line for it in {ledger}", "none")


def _conflict(where: str, expected: str, got: str) -> Problem:
    do = "the run is not the one that was witnessed; restore it from a copy"
    return Problem(Code.RECORD_CONFLICT, where, expected, got, do)
