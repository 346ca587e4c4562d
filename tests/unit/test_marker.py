import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from labctl import marker
from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.errors import AlreadyConsumed, BrokenEvidence, NotFound, PacketBurnt, Refused
from labctl.host.marker_file import require_bytes, require_in_place
from labctl.ledger import read_ledger
from labctl.marker import ConsumeRequest, consume_marker, new_run_name, open_consumed_packet, require_still_consumed
from labctl.marker_state import MarkerAbsent, MarkerEmpty, MarkerUnknown, MarkerValid, find_marker, read_marker_state
from labctl.packet.review import ReviewedPacket
from labctl.records.marker import Marker, PreflightPassed
from labctl.rundir import AuthorizationPaths
from tests.fakes.consuming import consume
from tests.fakes.packets import make_packet, write_packet_folder
from tests.fakes.sealed_run import DEAD_HOST, RUN_NAME

TOP = Path(__file__).parents[2]
needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


@pytest.fixture
def authorization(tmp_path: Path) -> AuthorizationPaths:
    paths = AuthorizationPaths(tmp_path / "authorization")
    packet = make_packet()
    write_packet_folder(paths.packets / packet.id, packet)
    paths.root.chmod(0o700)
    return paths


@pytest.fixture
def marker_path(authorization: AuthorizationPaths) -> Path:
    authorization.markers.mkdir(mode=0o700)
    return authorization.marker(make_packet().id)


def test_a_packet_is_consumed_once(authorization: AuthorizationPaths) -> None:
    consumed = consume(authorization.root)
    before = authorization.marker(consumed.packet_id).read_bytes()
    with pytest.raises(AlreadyConsumed) as caught:
        consume(authorization.root, run_dir="another-run")
    assert (caught.value.codes, caught.value.exit_code) == ((Code.CONSUMED,), 3)
    assert RUN_NAME in str(caught.value)
    assert f"`labctl packet freeze CAMPAIGN --follows {consumed.packet_id}`" in str(caught.value)
    assert authorization.marker(consumed.packet_id).read_bytes() == before
    assert len(read_ledger(authorization.ledger)) == 1


def test_the_marker_says_what_was_frozen_and_who_consumed_it(authorization: AuthorizationPaths) -> None:
    packet = make_packet()
    consumed = consume(authorization.root)
    written = Marker.from_json(authorization.marker(packet.id).read_bytes(), "marker")
    assert written == consumed.marker
    assert (written.packet_sha256, written.order, written.run_dir) == (packet.id, packet.order, RUN_NAME)
    assert (written.git_commit, written.host) == (packet.repository.commit, DEAD_HOST)
    assert written.approvals == ("e" * 64,)
    assert stat.S_IMODE(authorization.marker(packet.id).stat().st_mode) == 0o600


def test_the_ledger_is_the_second_witness(authorization: AuthorizationPaths) -> None:
    consumed = consume(authorization.root)
    line = read_ledger(authorization.ledger)[0]
    assert (line.event, line.packet_sha256, line.digest) == ("consumed", consumed.packet_id, consumed.marker_sha256)
    assert (line.campaign, line.run_dir) == ("quick-test", RUN_NAME)
    assert consumed.marker_sha256 == sha256_hex(consumed.marker_bytes)


def test_a_marker_that_was_deleted_does_not_free_its_packet(authorization: AuthorizationPaths) -> None:
    consumed = consume(authorization.root)
    authorization.marker(consumed.packet_id).unlink()
    with pytest.raises(AlreadyConsumed) as caught:
        consume(authorization.root)
    assert caught.value.codes == (Code.CONSUMED,)
    assert not authorization.marker(consumed.packet_id).exists()


def _file(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


PLANTED: dict[str, Callable[[Path], object]] = {
    "empty file": _file(b""),
    "torn file": _file(b'{"approvals":'),
    "foreign file": _file(b"hello\n"),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "live link": lambda path: path.symlink_to("/etc/hostname"),
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("what", PLANTED)
def test_whatever_lies_at_the_path_spends_the_packet(
    authorization: AuthorizationPaths, marker_path: Path, what: str
) -> None:
    PLANTED[what](marker_path)
    with pytest.raises(AlreadyConsumed) as caught:
        consume(authorization.root)
    assert (caught.value.codes, caught.value.exit_code) == ((Code.CONSUMED_BY_UNKNOWN,), 3)
    assert os.path.lexists(marker_path)
    assert not (marker_path.parent / "nowhere").exists()
    assert read_ledger(authorization.ledger) == ()


def test_the_state_of_a_path_is_told(authorization: AuthorizationPaths, marker_path: Path) -> None:
    packet = make_packet()
    assert read_marker_state(authorization, packet.id) == MarkerAbsent()
    marker_path.write_bytes(b"")
    assert read_marker_state(authorization, packet.id) == MarkerEmpty()
    marker_path.unlink()
    consumed = consume(authorization.root)
    assert read_marker_state(authorization, packet.id) == MarkerValid(consumed.marker, consumed.marker_bytes)
    marker_path.write_bytes(consumed.marker_bytes.replace(b",", b", ", 1))
    assert isinstance(read_marker_state(authorization, packet.id), MarkerUnknown)


def test_the_marker_of_another_packet_spends_the_packet_all_the_same(authorization: AuthorizationPaths) -> None:
    consumed = consume(authorization.root)
    other = make_packet(attempt=2)
    write_packet_folder(authorization.packets / other.id, other)
    authorization.marker(other.id).write_bytes(consumed.marker_bytes)
    assert isinstance(read_marker_state(authorization, other.id), MarkerUnknown)
    with pytest.raises(AlreadyConsumed):
        consume(authorization.root, other)


def test_two_packets_with_one_prefix_have_two_markers(authorization: AuthorizationPaths) -> None:
    consume(authorization.root)
    other = make_packet(attempt=2)
    write_packet_folder(authorization.packets / other.id, other)
    consume(authorization.root, other)
    assert {path.name for path in authorization.markers.iterdir()} == {f"{make_packet().id}.json", f"{other.id}.json"}


@pytest.mark.parametrize("name", ["packet.json", "prereg.yaml", "engine.json", "inputs/suite.yaml"])
def test_a_packet_that_changed_after_approval_is_refused_without_a_marker(
    authorization: AuthorizationPaths, name: str
) -> None:
    path = authorization.packet(make_packet().id).root / name
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(BrokenEvidence):
        consume(authorization.root)
    assert not authorization.markers.exists()


def test_a_broken_ledger_is_refused_without_a_marker(authorization: AuthorizationPaths) -> None:
    authorization.ledger.parent.mkdir()
    authorization.ledger.write_bytes(b"{}\n")
    with pytest.raises(BrokenEvidence) as caught:
        consume(authorization.root)
    assert set(caught.value.codes) == {Code.LEDGER_BROKEN}
    assert list(authorization.markers.iterdir()) == []


def test_preflight_for_another_packet_is_our_bug(authorization: AuthorizationPaths) -> None:
    packet = make_packet()
    reviewed = ReviewedPacket(packet, packet.id, authorization.packet(packet.id), ())
    preflight = PreflightPassed(packet_sha256="0" * 64, findings=(), file_systems={}, rehearsal_seal_sha256=None)
    request = ConsumeRequest(authorization, authorization.root, RUN_NAME, "0f" * 16, DEAD_HOST, SystemClock())
    with pytest.raises(RuntimeError):
        consume_marker(reviewed, preflight, request)
    assert not authorization.markers.exists()


def test_a_rehearsal_can_only_leave_the_marker_of_a_rehearsal(authorization: AuthorizationPaths) -> None:
    packet = make_packet(kind="rehearsal", service="embedded")
    write_packet_folder(authorization.packets / packet.id, packet)
    assert consume(authorization.root, packet).marker.kind == "rehearsal"


@pytest.mark.parametrize("place", ["", "markers"])
def test_a_root_that_others_can_write_to_is_refused(authorization: AuthorizationPaths, place: str) -> None:
    authorization.markers.mkdir(mode=0o700)
    (authorization.root / place).chmod(0o777)
    with pytest.raises(Refused) as caught:
        consume(authorization.root)
    assert set(caught.value.codes) == {Code.UNSAFE_ROOT}
    assert list(authorization.markers.iterdir()) == []


def test_a_markers_folder_that_is_a_link_is_refused(authorization: AuthorizationPaths, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    authorization.markers.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused) as caught:
        consume(authorization.root)
    assert caught.value.codes == (Code.UNSAFE_ROOT,)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_modes_do_not_depend_on_the_umask(authorization: AuthorizationPaths) -> None:
    before = os.umask(0o777)
    try:
        consumed = consume(authorization.root)
    finally:
        os.umask(before)
    assert stat.S_IMODE(authorization.marker(consumed.packet_id).stat().st_mode) == 0o600
    assert stat.S_IMODE(authorization.markers.stat().st_mode) == 0o700


def test_a_consumed_packet_is_opened_with_its_marker(authorization: AuthorizationPaths) -> None:
    consumed = consume(authorization.root)
    assert open_consumed_packet(authorization, consumed.packet_id) == consumed


def test_what_was_not_consumed_is_not_opened(authorization: AuthorizationPaths, marker_path: Path) -> None:
    with pytest.raises(BrokenEvidence):
        open_consumed_packet(authorization, make_packet().id)
    consumed = consume(authorization.root)
    authorization.ledger.unlink()
    with pytest.raises(BrokenEvidence, match="the ledger knows"):
        open_consumed_packet(authorization, consumed.packet_id)
    marker_path.write_bytes(b"")
    with pytest.raises(BrokenEvidence):
        open_consumed_packet(authorization, consumed.packet_id)


def test_a_swapped_authorization_root_is_noticed_before_a_start(authorization: AuthorizationPaths) -> None:
    consumed = consume(authorization.root)
    require_still_consumed(consumed)
    authorization.root.rename(authorization.root.with_name("moved"))
    shutil.copytree(authorization.root.with_name("moved"), authorization.root)
    require_still_consumed(consumed)
    authorization.marker(consumed.packet_id).write_bytes(b"{}\n")
    with pytest.raises(BrokenEvidence):
        require_still_consumed(consumed)
    with pytest.raises(BrokenEvidence):
        require_still_consumed(replace(consumed, authorization=AuthorizationPaths(authorization.root / "absent")))


def test_a_run_finds_its_marker(authorization: AuthorizationPaths) -> None:
    consumed = consume(authorization.root)
    (authorization.markers / "junk.json").write_bytes(b"")
    assert find_marker(authorization, RUN_NAME).marker == consumed.marker
    with pytest.raises(NotFound):
        find_marker(authorization, "another-run")


def test_run_names_never_repeat() -> None:
    packet = make_packet()
    names = {new_run_name(packet) for _ in range(100)}
    assert len(names) == 100
    assert all(name.startswith(f"quick-test-{packet.id[:12]}-") for name in names)


def test_of_many_controllers_exactly_one_wins(authorization: AuthorizationPaths) -> None:
    command = [sys.executable, "-m", "tests.fakes.consuming", str(authorization.root), "64"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, cwd=TOP).stdout.splitlines()
    assert sorted(line[0] for line in lines) == ["0"] + ["3"] * 63
    assert sum(line == "0 won" for line in lines) == 1
    assert sum(line.endswith(f"[{Code.CONSUMED}]") for line in lines) == 63
    assert len(read_ledger(authorization.ledger)) == 1


def traced(authorization: AuthorizationPaths, log: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Consume in a child under strace."""
    command = ["strace", "-f", "-y", "-o", str(log), *arguments, sys.executable, "-m", "tests.fakes.consuming"]
    return subprocess.run([*command, str(authorization.root)], capture_output=True, text=True, check=False, cwd=TOP)


@needs_strace
@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("marker", "fsync:error=EIO"),
        ("folder", "fsync:error=EIO"),
        ("marker", "write:error=ENOSPC"),
        ("marker", "write:retval=3:when=1"),
        ("ledger", "fsync:error=EIO"),
    ],
)
def test_a_failure_after_creation_burns_the_packet(
    authorization: AuthorizationPaths, marker_path: Path, tmp_path: Path, target: str, fault: str
) -> None:
    path = {"marker": marker_path, "folder": marker_path.parent, "ledger": authorization.ledger}[target]
    if target == "ledger":
        path.parent.mkdir(mode=0o700)
    log = tmp_path / "trace"
    call = fault.split(":", 1)[0]
    done = traced(authorization, log, "-e", f"trace={call}", "-P", str(path), "-e", f"inject={fault}")
    assert "(INJECTED)" in log.read_text()
    assert done.returncode == 4, (done.stdout, done.stderr)
    assert f"[{Code.MARKER_WRITE}]" in done.stdout
    assert os.path.lexists(marker_path)
    with pytest.raises(AlreadyConsumed):
        consume(authorization.root)


@needs_strace
def test_a_controller_killed_before_it_wrote_leaves_a_spent_packet(
    authorization: AuthorizationPaths, marker_path: Path, tmp_path: Path
) -> None:
    log = tmp_path / "trace"
    done = traced(
        authorization, log, "-e", "trace=write", "-P", str(marker_path), "-e", "inject=write:signal=KILL:when=1"
    )
    assert done.returncode != 0
    assert "killed by SIGKILL" in log.read_text()
    assert os.path.lexists(marker_path)
    with pytest.raises(AlreadyConsumed):
        consume(authorization.root)


@needs_strace
def test_the_marker_is_on_disk_before_the_ledger_speaks_of_it(
    authorization: AuthorizationPaths, marker_path: Path, tmp_path: Path
) -> None:
    log = tmp_path / "trace"
    done = traced(authorization, log, "-e", "trace=openat,write,fsync,fchmod")
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines()

    def first(*parts: str, after: int = -1) -> int:
        return next(n for n, line in enumerate(lines) if n > after and all(part in line for part in parts))

    created = first("openat(", marker_path.name, "O_EXCL", "O_NOFOLLOW", "0600")
    mode = first("fchmod(", f"<{marker_path}>", after=created)
    written = first("write(", f"<{marker_path}>", after=mode)
    synced = first("fsync(", f"<{marker_path}>", after=written)
    reread = first("openat(", marker_path.name, "O_RDONLY", after=synced)
    folder = first("fsync(", f"<{marker_path.parent}>", after=reread)
    ledger = first("write(", f"<{authorization.ledger}>", after=folder)
    assert first("fsync(", f"<{authorization.ledger}>", after=ledger) > ledger


def test_a_ledger_that_is_no_file_is_refused_without_a_marker(
    authorization: AuthorizationPaths, marker_path: Path
) -> None:
    authorization.ledger.mkdir(parents=True)
    with pytest.raises(BrokenEvidence) as caught:
        consume(authorization.root)
    assert caught.value.codes == (Code.LEDGER_BROKEN,)
    assert not os.path.lexists(marker_path)


def test_a_reviewed_packet_in_the_folder_of_another_is_our_bug(authorization: AuthorizationPaths) -> None:
    packet = make_packet(attempt=2)
    reviewed = ReviewedPacket(packet, packet.id, authorization.packet(make_packet().id), ())
    preflight = PreflightPassed(packet_sha256=packet.id, findings=(), file_systems={}, rehearsal_seal_sha256=None)
    request = ConsumeRequest(authorization, authorization.root, RUN_NAME, "0f" * 16, DEAD_HOST, SystemClock())
    with pytest.raises(RuntimeError):
        consume_marker(reviewed, preflight, request)


@pytest.fixture
def swapped(authorization: AuthorizationPaths, marker_path: Path) -> Iterator[tuple[int, Path]]:
    """An open markers folder that was moved away and replaced under its name."""
    descriptor = os.open(authorization.markers, os.O_RDONLY)
    authorization.markers.rename(authorization.markers.with_name("moved"))
    authorization.markers.mkdir(mode=0o700)
    yield descriptor, marker_path
    os.close(descriptor)


def test_a_markers_folder_that_was_swapped_is_noticed(swapped: tuple[int, Path]) -> None:
    with pytest.raises(BrokenEvidence) as caught:
        require_in_place(swapped[0], swapped[1].parent)
    assert caught.value.codes == (Code.UNSAFE_ROOT,)


def test_a_marker_in_the_folder_that_is_held_spends_the_packet(
    authorization: AuthorizationPaths, swapped: tuple[int, Path]
) -> None:
    descriptor, path = swapped
    (authorization.root / "moved" / path.name).write_bytes(b"")
    with pytest.raises(AlreadyConsumed) as caught:
        marker._create(descriptor, path, authorization, make_packet().id)
    assert caught.value.codes == (Code.CONSUMED_BY_UNKNOWN,)


def test_bytes_that_do_not_come_back_as_written_are_noticed(
    authorization: AuthorizationPaths, marker_path: Path
) -> None:
    marker_path.write_bytes(b"\0\0\0more")
    descriptor = os.open(authorization.markers, os.O_RDONLY)
    with pytest.raises(BrokenEvidence) as caught:
        require_bytes(descriptor, marker_path, b"1234567")
    os.close(descriptor)
    assert caught.value.codes == (Code.MARKER_WRITE,)


def test_a_marker_that_could_not_be_created_leaves_the_packet_unspent(
    authorization: AuthorizationPaths, marker_path: Path
) -> None:
    no_folder = os.open("/etc/hostname", os.O_RDONLY)
    with pytest.raises(Refused) as caught:
        marker._create(no_folder, marker_path, authorization, make_packet().id)
    assert caught.value.codes == (Code.MARKER_WRITE,)
    marker_path.write_bytes(b"")
    with pytest.raises(PacketBurnt):
        marker._create(no_folder, marker_path, authorization, make_packet().id)
    os.close(no_folder)


@needs_strace
def test_a_full_disk_before_creation_leaves_the_packet_unspent(
    authorization: AuthorizationPaths, marker_path: Path, tmp_path: Path
) -> None:
    log = tmp_path / "trace"
    fault = "inject=openat:error=ENOSPC:when=1"
    done = traced(authorization, log, "-e", "trace=openat", "-P", marker_path.name, "-e", fault)
    assert "(INJECTED)" in log.read_text()
    assert done.returncode == 3
    assert f"[{Code.MARKER_WRITE}]" in done.stdout
    assert not os.path.lexists(marker_path)


def test_a_ledger_line_that_cannot_be_written_burns_the_packet(
    authorization: AuthorizationPaths, marker_path: Path
) -> None:
    authorization.ledger.parent.symlink_to("/proc")
    with pytest.raises(PacketBurnt) as caught:
        consume(authorization.root)
    assert caught.value.exit_code == 4
    assert os.path.lexists(marker_path)
