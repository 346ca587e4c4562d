import os
import subprocess
import sys
from pathlib import Path

import pytest

from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.errors import BrokenEvidence, MalformedRecord, Refused
from labctl.protocol import Event
from labctl.records.marker import MarkerHost
from labctl.records.order import LegStarted
from labctl.records.run import NOTHING_SHA256, AbortCause, JournalEntry, Outcome, OutcomeKind
from labctl.rundir import RunPaths
from labctl.seal.abort import Abortion, restore_copies, seal_aborted
from labctl.seal.verify import open_sealed_run
from labctl.seal.write import seal_run
from tests.fakes.packets import write_packet_folder
from tests.fakes.run_records import journal_bytes
from tests.fakes.sealed_run import DEAD_HOST, EVENTS, RUN_NAME, make_marker, two_leg_packet, write_run

ABORTION = Abortion("the operator says so", NOTHING_SHA256, SystemClock())
BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.fixture
def killed(tmp_path: Path) -> RunPaths:
    """A run whose controller was killed in its second leg."""
    paths = write_run(tmp_path / RUN_NAME).paths
    paths.outcome.unlink()
    paths.journal.write_bytes(journal_bytes(EVENTS[:4]))
    return paths


def start_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_a_killed_run_is_sealed_as_aborted(killed: RunPaths) -> None:
    sealed = seal_aborted(killed.root, ABORTION)
    assert open_sealed_run(killed.root) == sealed
    assert (sealed.outcome.outcome, sealed.outcome.cause) == (OutcomeKind.ABORTED, AbortCause.CONTROLLER_KILLED)
    outcome = Outcome.from_json(sealed.read("outcome.json"), "outcome")
    assert outcome.legs_closed == ("A1",)
    assert outcome.detail == ("the operator says so",)


def test_the_journal_is_continued_and_its_chain_stays_sound(killed: RunPaths) -> None:
    before = killed.journal.read_bytes()
    after = seal_aborted(killed.root, ABORTION).read("journal.jsonl")
    assert after.startswith(before)
    last = JournalEntry.from_json(after.removeprefix(before), "journal")
    sound = journal_bytes((*EVENTS[:4], (Event.RUN_ABORTED, None))).splitlines()[-1]
    assert (last.event, last.seq) == (Event.RUN_ABORTED, 4)
    assert last.prev == JournalEntry.from_json(sound, "journal").prev


def test_a_journal_that_is_not_there_gets_its_one_entry(killed: RunPaths) -> None:
    killed.journal.unlink()
    entry = JournalEntry.from_json(seal_aborted(killed.root, ABORTION).read("journal.jsonl"), "journal")
    assert (entry.seq, entry.prev, entry.event) == (0, NOTHING_SHA256, Event.RUN_ABORTED)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda data: data[:-5], "line 4 is torn"),
        (lambda data: data + b"{}\n", "line 5 is not a journal entry"),
        (lambda data: data + data.splitlines(keepends=True)[-1], "line 5 does not follow the line before"),
    ],
)
def test_a_broken_journal_is_kept_as_it_is_and_named(killed: RunPaths, spoil: object, fault: str) -> None:
    assert callable(spoil)
    before = spoil(killed.journal.read_bytes())
    killed.journal.write_bytes(before)
    sealed = seal_aborted(killed.root, ABORTION)
    assert sealed.read("journal.jsonl") == before
    assert sealed.outcome.detail == ("the operator says so", f"journal.jsonl was left as it is: {fault}")


def test_an_outcome_that_is_there_is_kept_but_the_seal_says_aborted(killed: RunPaths) -> None:
    paths = write_run(killed.root.parent / "other" / RUN_NAME).paths
    before = paths.outcome.read_bytes()
    sealed = seal_aborted(paths.root, ABORTION)
    assert sealed.read("outcome.json") == before
    assert sealed.read("journal.jsonl") == journal_bytes(EVENTS)
    assert sealed.outcome.outcome is OutcomeKind.ABORTED
    assert sealed.outcome.detail[-1] == "outcome.json says completed"


def test_the_cause_of_an_aborted_run_is_kept(killed: RunPaths) -> None:
    outcome = Outcome(outcome=OutcomeKind.ABORTED, cause=AbortCause.LEG_FAILED, detail=("B1 failed",), legs_closed=())
    killed.outcome.write_bytes(outcome.canonical())
    sealed = seal_aborted(killed.root, ABORTION)
    assert (sealed.outcome.cause, sealed.outcome.detail) == (AbortCause.LEG_FAILED, ("B1 failed",))


def test_torn_records_are_sealed_as_they_are(killed: RunPaths) -> None:
    killed.outcome.write_bytes(b'{"cause":')
    killed.leg(2, "B1").exit.write_bytes(b"")
    sealed = seal_aborted(killed.root, ABORTION)
    assert sealed.read("outcome.json") == b'{"cause":'
    assert sealed.outcome.detail == ("the operator says so", "outcome.json is torn")


def test_a_folder_that_was_just_made_is_removed_and_named(killed: RunPaths) -> None:
    killed.leg(3, "B2").root.mkdir()
    assert "data/legs/03-B2" in seal_aborted(killed.root, ABORTION).outcome.detail[-1]


@pytest.mark.parametrize(
    "last", ["data/layout.json", "bagit.txt", "bag-info.txt", "manifest-sha256.txt", "tagmanifest-sha256.txt"]
)
@pytest.mark.parametrize("cut", [0, 10, None])
def test_a_crash_at_any_point_of_sealing_can_be_finished(tmp_path: Path, last: str, cut: int | None) -> None:
    run = write_run(tmp_path / RUN_NAME)
    seal_run(run, NOTHING_SHA256)
    order = (
        "data/layout.json",
        "bagit.txt",
        "bag-info.txt",
        "manifest-sha256.txt",
        "tagmanifest-sha256.txt",
        "seal.json",
    )
    for name in order[order.index(last) + 1 :]:
        (run.paths.root / name).unlink()
    torn = run.paths.root / last
    whole = torn.read_bytes()
    torn.chmod(0o600)
    torn.write_bytes(whole[:cut])
    sealed = seal_aborted(run.paths.root, ABORTION)
    assert torn.read_bytes() == whole
    assert sealed.outcome.outcome is OutcomeKind.ABORTED
    assert open_sealed_run(run.paths.root) == sealed


def test_what_an_earlier_sealing_left_must_be_what_is_computed_now(tmp_path: Path) -> None:
    run = write_run(tmp_path / RUN_NAME)
    seal_run(run, NOTHING_SHA256)
    run.paths.seal.unlink()
    wire = run.paths.leg(1, "A1").wire_bytes(1)
    wire.chmod(0o600)
    wire.write_bytes(bytes(wire.stat().st_size))
    with pytest.raises(BrokenEvidence) as caught:
        seal_aborted(run.paths.root, ABORTION)
    assert caught.value.codes == (Code.EXISTS,)
    assert not run.paths.seal.exists()


def test_a_half_written_seal_of_other_bytes_is_never_overwritten(killed: RunPaths) -> None:
    killed.seal.write_bytes(b'{"_type":"something')
    with pytest.raises(BrokenEvidence) as caught:
        seal_aborted(killed.root, ABORTION)
    assert caught.value.codes == (Code.EXISTS,)
    assert killed.seal.read_bytes() == b'{"_type":"something'


def test_a_seal_without_a_byte_is_finished(killed: RunPaths) -> None:
    killed.seal.write_bytes(b"")
    sealed = seal_aborted(killed.root, ABORTION)
    assert open_sealed_run(killed.root) == sealed


def test_a_sealed_run_is_not_sealed_again(killed: RunPaths) -> None:
    seal_aborted(killed.root, ABORTION)
    before = killed.seal.read_bytes()
    with pytest.raises(Refused) as caught:
        seal_aborted(killed.root, ABORTION)
    assert caught.value.codes == (Code.EXISTS,)
    assert killed.seal.read_bytes() == before


def test_a_run_whose_controller_lives_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        host = MarkerHost(
            machine_id_sha256="a" * 64,
            boot_id=BOOT_ID,
            controller_pid=child.pid,
            controller_start_ticks=start_ticks(child.pid),
        )
        paths = write_run(tmp_path / RUN_NAME, host).paths
        before = sorted(path for path in paths.root.rglob("*"))
        with pytest.raises(Refused) as caught:
            seal_aborted(paths.root, ABORTION)
        assert caught.value.codes == (Code.LEFTOVER,)
        assert f"process {child.pid}" in str(caught.value)
        assert sorted(path for path in paths.root.rglob("*")) == before
        child.communicate(b"\n")
    assert seal_aborted(paths.root, ABORTION).outcome.outcome is OutcomeKind.ABORTED


def test_a_run_whose_leg_lives_is_left_alone(killed: RunPaths) -> None:
    claim = LegStarted(
        leg="B1", order_sha256="0" * 64, pid=os.getpid(), start_ticks=start_ticks(os.getpid()), boot_id=BOOT_ID,
        wall_ns=0, mono_ns=0,
    )  # fmt: skip
    killed.leg(2, "B1").started.write_bytes(claim.canonical())
    with pytest.raises(Refused, match="leg B1, alive"):
        seal_aborted(killed.root, ABORTION)


def test_a_process_id_that_was_used_again_does_not_count_as_alive(tmp_path: Path) -> None:
    host = MarkerHost(machine_id_sha256="a" * 64, boot_id=BOOT_ID, controller_pid=os.getpid(), controller_start_ticks=1)
    assert seal_aborted(write_run(tmp_path / RUN_NAME, host).paths.root, ABORTION).seal_sha256


def test_a_run_without_a_marker_is_refused(killed: RunPaths) -> None:
    (killed.packet / "marker.copy.json").unlink()
    with pytest.raises(BrokenEvidence) as caught:
        seal_aborted(killed.root, ABORTION)
    assert caught.value.codes == (Code.MISSING_FILE,)


@pytest.mark.parametrize("made", ["nothing", "folder", "half a packet"])
def test_a_run_that_hardly_began_is_sealed_from_the_packet(tmp_path: Path, made: str) -> None:
    packet = two_leg_packet()
    folder = write_packet_folder(tmp_path / packet.id, packet)
    root = tmp_path / RUN_NAME
    if made != "nothing":
        RunPaths(root).packet.mkdir(parents=True)
    if made == "half a packet":
        (RunPaths(root).packet / "packet.json").write_bytes(packet.canonical()[:100])
    restore_copies(root, folder, make_marker(packet).canonical())
    sealed = seal_aborted(root, ABORTION)
    assert sealed.read("packet/packet.json") == packet.canonical()
    assert sealed.statement.predicate.counts.legs == 0


def test_copies_that_differ_from_the_packet_are_not_touched(killed: RunPaths, tmp_path: Path) -> None:
    packet = two_leg_packet()
    folder = write_packet_folder(tmp_path / packet.id, packet)
    (killed.packet / "prereg.yaml").write_bytes(b"something else\n")
    with pytest.raises(BrokenEvidence) as caught:
        restore_copies(killed.root, folder, make_marker(packet, host=DEAD_HOST).canonical())
    assert caught.value.codes == (Code.EXISTS,)


def test_a_torn_marker_copy_is_a_malformed_record(killed: RunPaths) -> None:
    (killed.packet / "marker.copy.json").write_bytes(b"{")
    with pytest.raises(MalformedRecord):
        seal_aborted(killed.root, ABORTION)
