import json
from dataclasses import replace
from pathlib import Path

import pytest

from labctl.campaign.lookup import FrozenPacket
from labctl.campaign.roots import Roots
from labctl.campaign.status import PacketState, PacketStatus
from labctl.cli.packet_table import UNREADABLE, facts_of, table, table_of_runs, verdict_of
from labctl.digest import sha256_hex
from labctl.rundir import SEAL, AuthorizationPaths, PacketPaths
from labctl.seal.analysis import seal_analysis
from tests.fakes.packets import make_packet

RUN = "quick-1"
CONSUMED_NS = 1_800_000_000_000_000_000


@pytest.fixture
def status(tmp_path: Path) -> PacketStatus:
    run = tmp_path / "runs" / RUN
    run.mkdir(parents=True)
    (run / SEAL).write_bytes(b"{}\n")
    roots = Roots(
        repository=tmp_path,
        authorization=AuthorizationPaths(tmp_path / "authorization"),
        runs=run.parent,
        analyses=tmp_path / "analyses",
        scratch=tmp_path / "scratch",
        anchor=tmp_path,
    )
    frozen = FrozenPacket(make_packet(), PacketPaths(tmp_path / "packet"), roots)
    return PacketStatus(frozen, PacketState.SEALED_COMPLETED, "completed", run, CONSUMED_NS)


def analyze(status: PacketStatus, name: str, verdict: str, supersedes: str | None = None, seal: bytes = b"{}\n") -> str:
    """Seal an analysis of the run; its own seal's digest."""
    folder = status.frozen.roots.analyses / f"{RUN}-{name}"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "verdict.json").write_text(json.dumps({"verdict": verdict}))
    return seal_analysis(folder, (RUN, sha256_hex(seal)), {"verdict": verdict, "supersedes": supersedes})


def test_a_run_that_nobody_judged_has_no_verdict(status: PacketStatus) -> None:
    assert verdict_of(status) is None
    assert verdict_of(replace(status, run=None)) is None


def test_the_verdict_is_that_of_the_analysis_that_nothing_supersedes(status: PacketStatus) -> None:
    first = analyze(status, "one", "invalid")
    assert verdict_of(status) == "invalid"
    analyze(status, "two", "exploratory_pass", supersedes=first)
    assert verdict_of(status) == "exploratory_pass"


def test_an_analysis_of_another_seal_says_nothing_of_this_run(status: PacketStatus) -> None:
    analyze(status, "one", "exploratory_pass", seal=b"another")
    assert verdict_of(status) is None


def test_two_analyses_that_both_stand_are_no_verdict(status: PacketStatus) -> None:
    analyze(status, "one", "invalid")
    analyze(status, "two", "exploratory_pass")
    assert verdict_of(status) == "several analyses"


def test_an_analysis_that_cannot_be_read_is_told_and_stops_nothing(status: PacketStatus) -> None:
    analyze(status, "one", "invalid")
    (status.frozen.roots.analyses / f"{RUN}-one" / "data" / "verdict.json").write_text("{")
    assert verdict_of(status) == UNREADABLE
    (status.frozen.roots.analyses / f"{RUN}-one" / SEAL).write_text("{")
    assert verdict_of(status) == UNREADABLE


def test_the_time_of_consumption_is_utc(status: PacketStatus) -> None:
    assert facts_of(status)["consumed_utc"] == "2027-01-15 08:00:00"
    assert facts_of(replace(status, consumed_wall_ns=None))["consumed_utc"] is None


def test_why_a_run_did_not_complete_stands_below_the_table(status: PacketStatus) -> None:
    aborted = replace(status, state=PacketState.SEALED_ABORTED, why="operator: SIGINT")
    header, row, why = table((aborted,))
    assert header.split() == ["campaign", "attempt", "kind", "packet", "state", "verdict", "consumed", "(UTC)"]
    assert row.split()[4:] == ["sealed_aborted", "-", "2027-01-15", "08:00:00"]
    assert why == f"{status.frozen.packet.id[:12]}: operator: SIGINT"


def test_columns_are_aligned_and_runs_name_their_folders(status: PacketStatus) -> None:
    unconsumed = replace(status, state=PacketState.UNCONSUMED, why="no marker", run=None, consumed_wall_ns=None)
    header, one, other = table_of_runs((status, unconsumed))
    assert one.endswith(f"  {status.run}")
    assert header.index("state") == one.index("sealed_completed") == other.index("unconsumed")
