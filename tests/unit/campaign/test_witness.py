"""A run that its author changed and sealed again is whole in itself; the ledger's line names another seal."""

import shutil
from pathlib import Path

import pytest

from labctl.campaign.witness import Witness, authorizations_here, require_witnessed
from labctl.codes import Code
from labctl.errors import BrokenEvidence
from labctl.ledger import LedgerEvent, append_ledger
from labctl.rundir import AuthorizationPaths
from labctl.seal.verify import SealedRun, open_sealed_run
from tests.fakes.run_builder import RunBuilder
from tests.tamper.mutations import Files
from tests.tamper.resealing import mended, resealed


@pytest.fixture
def run(tmp_path: Path) -> SealedRun:
    return RunBuilder().seal(tmp_path)


@pytest.fixture
def authorization(run: SealedRun, tmp_path: Path) -> AuthorizationPaths:
    paths = AuthorizationPaths(tmp_path / "authorization")
    subjects = run.statement.subject
    for event in (
        LedgerEvent("consumed", subjects[2].digest.sha256, "quick", run.run_dir, subjects[3].digest.sha256, 1),
        LedgerEvent("sealed", subjects[2].digest.sha256, "quick", run.run_dir, run.seal_sha256, 2),
    ):
        append_ledger(paths.ledger, event)
    return paths


def forged(run: SealedRun, path: str, old: bytes, new: bytes) -> SealedRun:
    """The run with one text replaced, and everything made to agree with it."""
    files: Files = {
        file.relative_to(run.root).as_posix(): file.read_bytes() for file in run.root.rglob("*") if file.is_file()
    }
    assert old in files[path]
    after = resealed(mended(files | {path: files[path].replace(old, new)}), run.run_dir, files["seal.json"])
    shutil.rmtree(run.root)
    for name, data in after.items():
        (run.root / name).parent.mkdir(parents=True, exist_ok=True)
        (run.root / name).write_bytes(data)
    return open_sealed_run(run.root)


def test_a_run_as_it_was_sealed_agrees_with_its_ledger(run: SealedRun, authorization: AuthorizationPaths) -> None:
    assert require_witnessed(run, [authorization]) is Witness.AGREES


def test_where_no_ledger_knows_the_run_nothing_is_claimed(run: SealedRun, tmp_path: Path) -> None:
    assert require_witnessed(run, [AuthorizationPaths(tmp_path / "nowhere")]) is Witness.NONE
    assert require_witnessed(run, authorizations_here(Path("/"))) is Witness.NONE


def test_a_run_that_was_sealed_again_is_not_the_one_that_was_witnessed(
    run: SealedRun, authorization: AuthorizationPaths
) -> None:
    again = forged(run, "data/legs/03-B2/server.log", b"INFO ready", b"INFO reads")
    with pytest.raises(BrokenEvidence) as caught:
        require_witnessed(again, [authorization])
    assert caught.value.codes == (Code.RECORD_CONFLICT,)
    assert "the seal: expected " in str(caught.value)


def test_a_marker_that_was_made_anew_is_not_the_one_that_was_witnessed(
    run: SealedRun, authorization: AuthorizationPaths
) -> None:
    again = forged(run, "data/packet/marker.copy.json", b'"mono_ns":5', b'"mono_ns":6')
    with pytest.raises(BrokenEvidence) as caught:
        require_witnessed(again, [authorization])
    assert [problem.where.split(": ")[1] for problem in caught.value.problems] == ["the marker", "the seal"]


def test_a_seal_that_no_line_names_is_not_witnessed(run: SealedRun, tmp_path: Path) -> None:
    paths = AuthorizationPaths(tmp_path / "another")
    subjects = run.statement.subject
    event = LedgerEvent("consumed", subjects[2].digest.sha256, "quick", run.run_dir, subjects[3].digest.sha256, 1)
    append_ledger(paths.ledger, event)
    with pytest.raises(BrokenEvidence, match="a line for it"):
        require_witnessed(run, [paths])
