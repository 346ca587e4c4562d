import mmap
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import bagit
import pytest

from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.errors import BrokenEvidence, LabctlError, Refused
from labctl.records.run import NOTHING_SHA256, AbortCause, ClosedRun, Layout, Outcome, OutcomeKind
from labctl.seal.abort import Abortion, seal_aborted
from labctl.seal.verify import SealState, open_sealed_run, seal_state
from labctl.seal.write import seal_run
from tests.fakes.packets import make_packet
from tests.fakes.sealed_run import RUN_NAME, make_marker, write_run, write_sealed_run

TOP = Path(__file__).parents[3]


@pytest.fixture
def run(tmp_path: Path) -> ClosedRun:
    return write_run(tmp_path / RUN_NAME)


def refusal(run: ClosedRun) -> LabctlError:
    with pytest.raises(BrokenEvidence) as caught:
        seal_run(run, NOTHING_SHA256)
    assert not run.paths.manifest.exists()
    assert not run.paths.seal.exists()
    return caught.value


def test_a_sealed_run_is_what_the_verifier_reads(run: ClosedRun) -> None:
    assert seal_run(run, NOTHING_SHA256) == open_sealed_run(run.paths.root)


def test_coreutils_and_bagit_agree_with_the_seal(tmp_path: Path) -> None:
    root = write_sealed_run(tmp_path / RUN_NAME).root
    for manifest in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
        subprocess.run(["sha256sum", "-c", "--strict", "--quiet", manifest], cwd=root, check=True)
    bag = bagit.Bag(str(root))
    bag.validate()
    assert bag.info["Payload-Oxum"] == f"{sum(f.stat().st_size for f in files(root))}.{len(files(root))}"


def files(root: Path) -> list[Path]:
    return [path for path in (root / "data").rglob("*") if path.is_file()]


def test_the_layout_has_the_size_of_every_other_file(tmp_path: Path) -> None:
    sealed = write_sealed_run(tmp_path / RUN_NAME)
    layout = Layout.from_json(sealed.read("layout.json"), "layout.json")
    expected = {path.relative_to(sealed.paths.data).as_posix(): path.stat().st_size for path in files(sealed.root)}
    assert layout.files == {path: size for path, size in expected.items() if path != "layout.json"}


def test_sealed_files_are_read_only_and_set_apart_from_others(tmp_path: Path) -> None:
    sealed = write_sealed_run(tmp_path / RUN_NAME)
    assert {path.stat().st_mode & 0o777 for path in files(sealed.root)} == {0o400}


def test_a_second_sealing_is_refused(run: ClosedRun) -> None:
    seal_run(run, NOTHING_SHA256)
    before = run.paths.seal.read_bytes()
    with pytest.raises(Refused) as caught:
        seal_run(run, NOTHING_SHA256)
    assert set(caught.value.codes) == {Code.EXISTS}
    assert run.paths.seal.read_bytes() == before


def _symlink(folder: Path) -> None:
    (folder / "server.log").unlink()
    (folder / "server.log").symlink_to("/etc/hostname")


def _folder_symlink(folder: Path) -> None:
    (folder / "wire").rename(folder.parent.parent.parent.parent / "elsewhere")
    (folder / "wire").symlink_to(folder.parent.parent.parent.parent / "elsewhere")


def _hard_link(folder: Path) -> None:
    os.link(folder / "server.log", folder / "maps.txt")


def _fifo(folder: Path) -> None:
    os.mkfifo(folder / "maps.txt")


def _setuid(folder: Path) -> None:
    (folder / "server.log").chmod(0o4755)


def _control_name(folder: Path) -> None:
    (folder / "wire" / "a\x1b[2Jb").write_bytes(b"")


def _hidden(folder: Path) -> None:
    (folder / ".hidden").write_bytes(b"")


def _case_twin(folder: Path) -> None:
    (folder / "wire" / "X.bin").write_bytes(b"")
    (folder / "wire" / "x.bin").write_bytes(b"")


@pytest.mark.parametrize(
    "plant", [_symlink, _folder_symlink, _hard_link, _fifo, _setuid, _control_name, _hidden, _case_twin]
)
def test_what_no_run_may_hold_is_refused(run: ClosedRun, plant: Callable[[Path], None]) -> None:
    plant(run.paths.leg(1, "A1").root)
    error = refusal(run)
    assert set(error.codes) == {Code.FORBIDDEN_FILE}
    assert "\x1b" not in str(error)


def test_a_bind_mount_inside_a_run_is_refused(run: ClosedRun, tmp_path: Path) -> None:
    other = Path("/dev/shm")
    if os.geteuid() != 0 or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs root and a second file system")
    phase = run.paths.phase
    phase.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", str(phase)], check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        (phase / "labctl.json").write_bytes(b"{}\n")
        assert set(refusal(run).codes) == {Code.FORBIDDEN_FILE}
    finally:
        subprocess.run(["umount", str(phase)], check=True)


def test_a_file_of_an_unknown_kind_is_refused(run: ClosedRun) -> None:
    (run.paths.data / "notes.txt").write_bytes(b"")
    (run.paths.root / "README").write_bytes(b"")
    error = refusal(run)
    assert {problem.where for problem in error.problems} == {"data/notes.txt", "README"}
    assert set(error.codes) == {Code.EXTRA_FILE}


def test_an_empty_folder_is_refused(run: ClosedRun) -> None:
    run.paths.phase.mkdir()
    assert refusal(run).codes == (Code.EXTRA_FILE,)


def test_an_aborted_run_loses_its_empty_folders_and_says_so(run: ClosedRun) -> None:
    run.paths.leg(3, "B2").wire.mkdir(parents=True)
    outcome = Outcome(outcome=OutcomeKind.ABORTED, cause=AbortCause.LEG_FAILED, detail=("B2 failed",), legs_closed=())
    run.paths.outcome.write_bytes(outcome.canonical())
    sealed = seal_run(ClosedRun(run.paths, outcome), NOTHING_SHA256)
    assert sealed.outcome.detail == (
        "B2 failed",
        "removed the empty folder 'data/legs/03-B2/wire'",
        "removed the empty folder 'data/legs/03-B2'",
    )
    assert open_sealed_run(run.paths.root) == sealed


@contextmanager
def writer(path: Path, program: str) -> Iterator[None]:
    """Another process that has a file open for writing."""
    command = [sys.executable, "-c", f"import sys, mmap\n{program}\nprint(flush=True)\nsys.stdin.read()", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"\n"
        yield
        assert child.stdin is not None
        child.stdin.close()


@pytest.mark.parametrize(
    "program",
    [
        "stream = open(sys.argv[1], 'ab')",
        "stream = open(sys.argv[1], 'r+b'); view = mmap.mmap(stream.fileno(), 0); stream.close()",
    ],
)
def test_a_file_that_another_process_can_write_is_refused(run: ClosedRun, program: str) -> None:
    log = run.paths.leg(1, "A1").server_log
    with writer(log, program):
        problem = refusal(run).problems[0]
    assert (problem.code, problem.where) == (Code.OPEN_WRITER, "data/legs/01-A1/server.log")


def wait_for_lease(path: Path) -> None:
    """Return when the file is leased, which is while it is hashed."""
    wanted = f":{path.stat().st_ino} "
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if any("LEASE" in line and wanted in line for line in Path("/proc/locks").read_text().splitlines()):
            return


@contextmanager
def while_hashed(path: Path, act: Callable[[], None], size_bytes: int = 1 << 28) -> Iterator[None]:
    """Do something in another thread at the moment when a file (made large here) is being hashed."""
    with path.open("wb") as stream:
        stream.truncate(size_bytes)

    def wait_and_act() -> None:
        wait_for_lease(path)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_a_writer_that_comes_while_hashing_ends_the_sealing(run: ClosedRun) -> None:
    big = run.paths.leg(1, "A1").wire_bytes(2)
    refused = []

    def intrude() -> None:
        try:
            os.close(os.open(big, os.O_WRONLY | os.O_NONBLOCK))
        except BlockingIOError as error:  # the lease held this try up, and was broken by it
            refused.append(error)

    before = signal.getsignal(signal.SIGIO)
    with while_hashed(big, intrude):
        problem = refusal(run).problems[0]
    assert refused
    assert (problem.code, problem.where) == (Code.OPEN_WRITER, "data/legs/01-A1/wire/02.bin")
    assert problem.got == "one that came while it was hashed"
    assert signal.getsignal(signal.SIGIO) == before


def test_a_folder_renamed_while_hashing_is_noticed(run: ClosedRun) -> None:
    leg = run.paths.leg(1, "A1")

    def rename() -> None:
        leg.wire.rename(leg.root / "elsewhere")

    with while_hashed(leg.wire_bytes(2), rename):
        error = refusal(run)
    assert "data/legs/01-A1/wire/02.bin" in {p.where for p in error.problems if p.code is Code.CHANGED_WHILE_READ}


def test_a_file_that_appears_while_hashing_is_noticed(run: ClosedRun) -> None:
    leg = run.paths.leg(1, "A1")
    with while_hashed(leg.wire_bytes(2), leg.maps.touch):
        error = refusal(run)
    assert [(p.code, p.where) for p in error.problems] == [(Code.CHANGED_WHILE_READ, "data/legs/01-A1/maps.txt")]


def strace(*arguments: str, run_folder: Path, log: Path) -> subprocess.CompletedProcess[str]:
    """Seal a run in a child under strace."""
    command = ["strace", "-f", "-y", "-o", str(log), *arguments, sys.executable, "-m", "tests.fakes.sealed_run"]
    return subprocess.run([*command, str(run_folder)], capture_output=True, text=True, check=False, cwd=TOP)


needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


@needs_strace
@pytest.mark.parametrize(("call", "code"), [("fsync", Code.WRITE_FAILED), ("read", Code.READ_FAILED)])
def test_an_input_output_error_names_the_file(run: ClosedRun, tmp_path: Path, call: str, code: Code) -> None:
    wire = run.paths.leg(2, "B1").wire_bytes(1)
    fault = ("-e", f"trace={call}", "-P", str(wire), "-e", f"inject={call}:error=EIO")
    log = tmp_path / "trace"
    done = strace(*fault, run_folder=run.paths.root, log=log)
    assert "(INJECTED)" in log.read_text()
    assert done.returncode == 5
    assert done.stdout.startswith("data/legs/02-B1/wire/01.bin: ")
    assert f"[{code}]" in done.stdout
    assert not run.paths.manifest.exists()


@needs_strace
@pytest.mark.parametrize("place", ["data/legs/01-A1/wire", "data", ""])
def test_a_folder_that_cannot_be_put_on_disk_is_named(run: ClosedRun, tmp_path: Path, place: str) -> None:
    log = tmp_path / "trace"
    fault = ("-e", "trace=fsync", "-P", str(run.paths.root / place), "-e", "inject=fsync:error=EIO:when=1+")
    done = strace(*fault, run_folder=run.paths.root, log=log)
    assert "(INJECTED)" in log.read_text()
    assert done.returncode == 5
    assert f"[{Code.WRITE_FAILED}]" in done.stdout
    assert not run.paths.seal.exists()


@needs_strace
def test_payload_folders_and_manifest_are_on_disk_before_the_seal_exists(run: ClosedRun, tmp_path: Path) -> None:
    log = tmp_path / "trace"
    done = strace("-e", "trace=fsync,openat", run_folder=run.paths.root, log=log)
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines()
    root = run.paths.root

    def last_fsync(path: Path, before: int) -> int:
        return max(n for n, line in enumerate(lines[:before]) if "fsync(" in line and f"<{path}>" in line)

    def created(name: str) -> int:
        return next(n for n, line in enumerate(lines) if name in line and "O_EXCL" in line)

    manifest, seal = created("manifest-sha256.txt"), created("seal.json")
    for path in (*files(root), *(path for path in (root / "data").rglob("*") if path.is_dir()), root / "data"):
        assert last_fsync(path, manifest) < manifest
    for name in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
        assert manifest <= created(name) < last_fsync(root / name, seal) < last_fsync(root, seal) < seal
    end = len(lines)
    assert seal < last_fsync(root / "seal.json", end) < last_fsync(root, end)


def test_mapped_readers_do_not_stand_in_the_way(run: ClosedRun) -> None:
    log = run.paths.leg(1, "A1").server_log
    with log.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ):
        assert seal_run(run, NOTHING_SHA256).seal_sha256


def large(run: ClosedRun, count: int) -> list[Path]:
    """Files that take so long to hash that those behind them wait for a thread."""
    paths = [run.paths.leg(1, "A1").wire_bytes(row) for row in range(2, count + 2)]
    for path in paths:
        with path.open("wb") as stream:
            stream.truncate(1 << 26)
    return paths


def late(run: ClosedRun) -> Path:
    """A file that is hashed after the large ones."""
    return run.paths.leg(2, "B1").wire_bytes(1)


def test_a_signal_that_speaks_of_a_lease_ends_the_sealing_whoever_sent_it(run: ClosedRun) -> None:
    first = large(run, 12)[0]
    with while_hashed(first, lambda: os.kill(os.getpid(), signal.SIGIO)):
        problems = refusal(run).problems
    assert [(problem.code, problem.where) for problem in problems] == [(Code.OPEN_WRITER, "data")]


def test_a_file_that_goes_before_its_turn_is_named(run: ClosedRun) -> None:
    with while_hashed(large(run, 12)[0], late(run).unlink):
        error = refusal(run)
    assert [(problem.code, problem.where) for problem in error.problems] == [
        (Code.READ_FAILED, "data/legs/02-B1/wire/01.bin")
    ]


def test_a_file_that_grows_before_its_turn_is_named(run: ClosedRun) -> None:
    def grow() -> None:
        with late(run).open("ab") as stream:
            stream.write(b"more")

    with while_hashed(large(run, 12)[0], grow):
        problem = refusal(run).problems[0]
    assert (problem.code, problem.where) == (Code.CHANGED_WHILE_READ, "data/legs/02-B1/wire/01.bin")


def test_a_file_whose_time_is_set_back_while_it_is_hashed_is_named(run: ClosedRun) -> None:
    big = run.paths.leg(1, "A1").wire_bytes(2)
    with while_hashed(big, lambda: os.utime(big, ns=(0, 0))):
        problem = refusal(run).problems[0]
    assert (problem.code, problem.where) == (Code.CHANGED_WHILE_READ, "data/legs/01-A1/wire/02.bin")


def test_an_enormous_file_is_refused_before_it_is_read(run: ClosedRun) -> None:
    with run.paths.leg(1, "A1").wire_bytes(2).open("wb") as stream:
        stream.truncate(1 << 40)
    started = time.monotonic()
    assert refusal(run).codes == (Code.TOO_LARGE,)
    assert time.monotonic() - started < 5


def test_a_run_without_its_marker_or_its_outcome_is_refused(run: ClosedRun) -> None:
    outcome = run.paths.outcome.read_bytes()
    run.paths.outcome.unlink()
    assert refusal(run).codes == (Code.MISSING_FILE,)
    run.paths.outcome.write_bytes(outcome)
    run.paths.layout.unlink()
    (run.paths.packet / "marker.copy.json").unlink()
    problem = refusal(run).problems[0]
    assert (problem.code, problem.where) == (Code.MISSING_FILE, "data/packet/marker.copy.json")


def test_an_outcome_that_is_not_the_one_that_is_sealed_is_refused(run: ClosedRun) -> None:
    outcome = Outcome(outcome=OutcomeKind.PHASE_STOPPED, cause=None, detail=(), legs_closed=("A1",))
    assert refusal(ClosedRun(run.paths, outcome)).codes == (Code.SEAL_FOREIGN,)


def test_folders_within_folders_without_end_are_refused(run: ClosedRun) -> None:
    deep = run.paths.legs.joinpath(*["x"] * 40)
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"")
    assert refusal(run).codes == (Code.FORBIDDEN_FILE,)


def test_a_payload_that_is_no_folder_is_refused(run: ClosedRun) -> None:
    run.paths.data.rename(run.paths.root.parent / "elsewhere")
    assert refusal(run).codes == (Code.READ_FAILED,)
    run.paths.data.symlink_to(run.paths.root.parent / "elsewhere")
    assert refusal(run).codes == (Code.FORBIDDEN_FILE,)


def test_what_the_packet_pins_stands_in_the_statement(tmp_path: Path) -> None:
    packet = make_packet(
        sources=[
            {"kind": "git", "name": "serving", "commit": "a" * 40, "tree_dirhash": "b" * 64, "files": 1},
            {
                "kind": "installed",
                "name": "vllm",
                "version": "1",
                "record_sha256": "c" * 64,
                "files_dirhash": "d" * 64,
                "files": 1,
            },
        ],
        models=[{"name": "tiny", "manifest_sha256": "e" * 64, "files": 1, "bytes": 1}],
    )
    run = write_run(tmp_path / RUN_NAME)
    (run.paths.packet / "packet.json").write_bytes(packet.canonical())
    (run.paths.packet / "marker.copy.json").write_bytes(make_marker(packet).canonical())
    said = seal_run(run, NOTHING_SHA256).statement.predicate.resolved_dependencies
    assert [(one.name, one.digest.sha256[0]) for one in said] == [
        ("git/serving", "b"),
        ("installed/vllm", "d"),
        ("model/tiny", "e"),
    ]


@needs_strace
@pytest.mark.parametrize(
    ("call", "number"),
    [("fsync", number) for number in (1, 2, 3, 8, 11, 13, 15, 17, 19, 20)]
    + [("write", number) for number in range(1, 7)],
)
def test_a_sealing_that_is_killed_anywhere_can_be_ended(run: ClosedRun, tmp_path: Path, call: str, number: int) -> None:
    log = tmp_path / "trace"
    fault = ("-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}")
    done = strace(*fault, run_folder=run.paths.root, log=log)
    assert "killed by SIGKILL" in log.read_text()
    assert done.returncode != 0
    if seal_state(run.paths.root) is SealState.SEALED:
        assert open_sealed_run(run.paths.root).outcome.outcome is OutcomeKind.COMPLETED
        return
    with pytest.raises(BrokenEvidence):
        open_sealed_run(run.paths.root)
    sealed = seal_aborted(run.paths.root, Abortion("killed while sealing", NOTHING_SHA256, SystemClock()))
    assert open_sealed_run(run.paths.root) == sealed
    assert sealed.outcome.outcome is OutcomeKind.ABORTED
