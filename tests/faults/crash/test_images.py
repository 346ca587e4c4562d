"""What counts is on the disk of a real ext4 when the power goes; what was only written is not."""

import shutil
from pathlib import Path

import pytest

from labctl.ledger import read_ledger
from labctl.marker_state import MarkerValid, read_marker_state
from labctl.records.run import NOTHING_SHA256, ClosedRun, Outcome
from labctl.rundir import AuthorizationPaths, RunPaths
from labctl.seal.verify import open_sealed_run
from labctl.seal.write import seal_run
from tests.fakes.consuming import consume
from tests.fakes.packets import make_packet
from tests.fakes.sealed_run import RUN_NAME, write_run
from tests.faults.crash.images import crash_after, why_not
from tests.faults.crash.races import prepare_packet

REASON = why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


def test_a_marker_and_its_ledger_line_survive_the_moment_of_consuming(tmp_path: Path) -> None:
    def act(root: Path) -> None:
        consume(prepare_packet(root / "authorization").root)
        (root / "witness").write_bytes(b"written, not synced")

    with crash_after(tmp_path, act) as root:
        authorization = AuthorizationPaths(root / "authorization")
        assert isinstance(read_marker_state(authorization, make_packet().id), MarkerValid)
        assert len(read_ledger(authorization.ledger)) == 1
        assert not (root / "witness").exists() or (root / "witness").read_bytes() == b""


def test_a_seal_survives_with_every_file_that_it_seals(tmp_path: Path) -> None:
    made = write_run(tmp_path / "origin" / RUN_NAME)

    def act(root: Path) -> None:
        shutil.copytree(made.paths.root, root / RUN_NAME)
        paths = RunPaths(root / RUN_NAME)
        outcome = Outcome.from_json(paths.outcome.read_bytes(), "outcome")
        seal_run(ClosedRun(paths, outcome), NOTHING_SHA256)
        (root / "witness").write_bytes(b"written, not synced")

    with crash_after(tmp_path, act) as root:
        assert len(open_sealed_run(root / RUN_NAME).names()) == 16
        assert not (root / "witness").exists() or (root / "witness").read_bytes() == b""


def test_a_run_that_was_not_sealed_is_not_there_in_full(tmp_path: Path) -> None:
    """The guard of the two above: without a sync this disk does lose what was written."""

    def act(root: Path) -> None:
        write_run(root / RUN_NAME)

    with crash_after(tmp_path, act) as root:
        found = [path for path in root.rglob("*") if path.is_file() and path.stat().st_size]
        assert found == []
