import json
import subprocess
import sys
from pathlib import Path

import pytest

from labctl.ledger import read_ledger
from labctl.rundir import AuthorizationPaths, RunPaths
from labctl.seal.verify import SealedRun, open_sealed_run
from tests.fakes.consuming import consume
from tests.fakes.packets import write_packet_folder
from tests.fakes.run_records import journal_bytes
from tests.fakes.sealed_run import EVENTS, RUN_NAME, spoil, two_leg_packet, write_run, write_sealed_run
from tests.tamper.resealing import resealed


def labctl(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "labctl.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture
def sealed(tmp_path: Path) -> SealedRun:
    return write_sealed_run(tmp_path / RUN_NAME)


def test_a_sealed_run_is_told_in_one_line(sealed: SealedRun) -> None:
    done = labctl("seal", "verify", sealed.root)
    assert (done.returncode, done.stderr) == (0, "")
    told = f"{RUN_NAME}: sealed, 16 files, root {sealed.root_sha256}, outcome completed"
    assert done.stdout == f"{told}; no ledger here knows it\n"


def test_the_folder_one_stands_in_can_be_verified(sealed: SealedRun) -> None:
    assert labctl("seal", "verify", ".", cwd=sealed.root).returncode == 0


@pytest.mark.parametrize("command", [("seal", "verify"), ("runs", "show"), ("report",), ("analyze", "sealed-run")])
def test_a_folder_that_is_no_run_is_named_in_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = labctl(*command, tmp_path)
    assert (done.returncode, done.stdout) == (5, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{tmp_path}: expected a sealed run, got a folder with no part of one")
    assert line.endswith("[UNSEALED]")


def test_every_issue_is_one_line_and_exit_5(sealed: SealedRun) -> None:
    spoil(sealed.paths.journal, b"x")
    sealed.paths.outcome.unlink()
    done = labctl("seal", "verify", sealed.root)
    assert (done.returncode, done.stdout) == (5, "")
    assert sorted(line.split(":")[0] for line in done.stderr.splitlines()) == [
        "data/journal.jsonl",
        "data/outcome.json",
    ]


@pytest.mark.parametrize("name", ["seal.json", "manifest-sha256.txt"])
def test_an_unsealed_run_is_never_fine(sealed: SealedRun, name: str) -> None:
    (sealed.root / name).unlink()
    done = labctl("seal", "verify", sealed.root)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith(f"{name}: ")
    assert "[UNSEALED]" in done.stderr


def test_json_says_the_same_with_the_same_exit_status(sealed: SealedRun) -> None:
    done = labctl("seal", "verify", sealed.root, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["seal_sha256"] == sealed.seal_sha256
    spoil(sealed.paths.journal, b"x")
    done = labctl("seal", "verify", sealed.root, "--json")
    assert done.returncode == 5
    assert [problem["code"] for problem in json.loads(done.stdout)["problems"]] == ["SIZE_MISMATCH"]


def test_a_name_that_moves_the_cursor_is_not_printed_raw(sealed: SealedRun) -> None:
    (sealed.paths.data / "\x1b[2JOK").write_bytes(b"")
    done = labctl("seal", "verify", sealed.root)
    assert done.returncode == 5
    assert "\x1b" not in done.stdout + done.stderr


@pytest.fixture
def authorization(tmp_path: Path) -> AuthorizationPaths:
    """A repository in which a packet was consumed by a process that is gone."""
    packet = two_leg_packet()
    paths = AuthorizationPaths(tmp_path / ".labctl" / "authorization")
    write_packet_folder(paths.packets / packet.id, packet)
    (tmp_path / ".git").mkdir()
    for folder in (paths.root.parent, paths.root):
        folder.chmod(0o700)
    consume(paths.root, packet)
    return paths


@pytest.mark.parametrize("stage", ["nothing", "half"])
def test_a_killed_run_is_sealed_as_aborted_and_the_ledger_knows(
    authorization: AuthorizationPaths, tmp_path: Path, stage: str
) -> None:
    root = tmp_path / ".labctl" / "runs" / RUN_NAME
    root.parent.mkdir()
    if stage == "half":
        paths = write_run(root).paths
        paths.outcome.unlink()
        paths.journal.write_bytes(journal_bytes(EVENTS[:2]))
        (paths.packet / "marker.copy.json").unlink()
    done = labctl("seal", "abort", root, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    sealed = open_sealed_run(root)
    assert sealed.outcome.outcome == "aborted"
    lines = read_ledger(authorization.ledger)
    assert [line.event for line in lines] == ["consumed", "sealed"]
    assert lines[1].digest == sealed.seal_sha256
    assert lines[1].prev == sealed.statement.predicate.prev_ledger_digest
    assert "; the ledger agrees\n" in labctl("seal", "verify", root, cwd=tmp_path).stdout
    again = labctl("seal", "abort", root, cwd=tmp_path)
    assert again.returncode == 3
    assert "[EXISTS]" in again.stderr
    assert len(read_ledger(authorization.ledger)) == 2


def test_a_run_is_not_made_where_it_does_not_belong(authorization: AuthorizationPaths, tmp_path: Path) -> None:
    done = labctl("seal", "abort", RUN_NAME, cwd=tmp_path)
    assert done.returncode == 3
    assert str(tmp_path / ".labctl" / "runs" / RUN_NAME) in done.stderr
    assert not (tmp_path / RUN_NAME).exists()
    assert len(read_ledger(authorization.ledger)) == 1


def test_a_run_that_no_marker_names_is_not_sealed(authorization: AuthorizationPaths, tmp_path: Path) -> None:
    other = RunPaths(tmp_path / "another-run")
    done = labctl("seal", "abort", other.root, "--authorization", authorization.root)
    assert done.returncode == 3
    assert "[NOT_FOUND]" in done.stderr
    assert not other.root.exists()


def test_a_run_that_was_sealed_again_after_its_ledger_line_is_refused(
    authorization: AuthorizationPaths, tmp_path: Path
) -> None:
    root = tmp_path / ".labctl" / "runs" / RUN_NAME
    root.parent.mkdir()
    assert labctl("seal", "abort", root, cwd=tmp_path).returncode == 0
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    again = resealed(files | {"data/packet/prereg.yaml": b"id: another\n"}, RUN_NAME, files["seal.json"])
    for name, data in again.items():
        spoil(root / name, data)
    assert open_sealed_run(root).seal_sha256 != read_ledger(authorization.ledger)[1].digest
    for arguments in (("--authorization", str(authorization.root)), ("--json",)):
        done = labctl("seal", "verify", root, *arguments, cwd=tmp_path)
        assert done.returncode == 5
        assert "[RECORD_CONFLICT]" in done.stderr
