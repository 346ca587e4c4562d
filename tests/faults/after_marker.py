"""One injection for each code that is raised from the marker on: spent packets, bad servers, spoiled files.

An injection takes an empty folder and must end in one `LabctlError`.
"""

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labctl.agreement import disagreements
from labctl.analyze.sealed_run import analyze_run
from labctl.campaign.secret_scan import Secrets
from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.digest import manifest_lines, sha256_hex
from labctl.durable import write_once
from labctl.engines.reference import VOCABULARY
from labctl.engines.vocabulary import Endpoints
from labctl.errors import BrokenEvidence, LegFailed, Problem
from labctl.frozen import canonical_json, strict_json
from labctl.judges import judge_phase
from labctl.ledger import read_ledger
from labctl.leg.claim import OpenedOrder, claim_leg, require_place
from labctl.leg.interruption import REASONS, Interruption
from labctl.measure.session import PlannedRequest, SessionPlan, measure_prompts
from labctl.measure.wire import RowLimits
from labctl.packet.tool import analyzer_identity
from labctl.records.marker import Marker, MarkerHost
from labctl.records.run import NOTHING_SHA256
from labctl.records.verdict import Verdict, VerdictKind
from labctl.rundir import AuthorizationPaths, LegPaths
from labctl.seal.abort import Abortion, seal_aborted
from labctl.seal.bag import tag_manifest
from labctl.seal.manifest import parse_manifest
from labctl.seal.verify import open_sealed_run
from labctl.seal.write import seal_run
from labctl.servers.log import ServerLog
from labctl.servers.process import ServerCommand, ServerProcess
from labctl.servers.readiness import ReadyPlan, await_ready
from tests.fakes.consuming import consume
from tests.fakes.leg import FAKE_SERVER, LegPlace, codes_of, free_port, run
from tests.fakes.packets import make_packet, write_packet_folder
from tests.fakes.run_builder import RunBuilder
from tests.fakes.sealed_run import RUN_NAME, spoil, write_run, write_sealed_run
from tests.fakes.stream_server import Hold, Send, Step, StreamServer, response
from tests.unit.seal.test_write import large, late, while_hashed

CLOCK = SystemClock()
COUNTERS: list[Step] = [Send(response("200 OK", "text/plain", b"requests 0\n"))]


def consumed(folder: Path) -> None:
    """The same packet a second time."""
    root = _frozen(folder).root
    consume(root)
    consume(root)


def consumed_by_unknown(folder: Path) -> None:
    """Something that labctl did not write lies at the marker's path."""
    authorization = _frozen(folder)
    authorization.markers.mkdir(mode=0o700)
    authorization.marker(make_packet().id).symlink_to(folder / "nowhere")
    consume(authorization.root)


def ledger_broken(folder: Path) -> None:
    """The ledger's last line was torn."""
    authorization = _frozen(folder)
    consume(authorization.root)
    ledger = authorization.ledger
    ledger.write_bytes(ledger.read_bytes()[:-2])
    read_ledger(ledger)


def marker_write(folder: Path) -> None:
    """No byte can be written into the marker."""
    root = _frozen(folder).root
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        consume(root)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def already_started(folder: Path) -> None:
    """A second process claims the same leg."""
    order = LegPlace.new(folder).order()
    opened = OpenedOrder(order, sha256_hex(order.canonical()))
    claim_leg(opened, CLOCK)
    claim_leg(opened, CLOCK)


def wrong_machine(folder: Path) -> None:
    """A work order of another machine."""
    require_place(LegPlace.new(folder).order(machine_id_sha256="f" * 64))


def server_exited(folder: Path) -> None:
    """The server ends at once."""
    _ready(folder, "--exit-at-start", "7")


def ready_timeout(folder: Path) -> None:
    """The server never says that it is healthy."""
    _ready(folder, "--never-ready")


def foreign_listener(folder: Path) -> None:
    """The server says that it is somebody else."""
    _ready(folder, "--serve-as", "someone-else")


def stream_broken(folder: Path) -> None:
    """The server answers a prompt with status 500."""
    _measure(folder, [Send(response("500 Oops", "application/json", b"{}"))])


def request_timeout(folder: Path) -> None:
    """The server takes a prompt and says nothing."""
    _measure(folder, [Hold()])


def interrupted_with(code: Code) -> "_Interrupted":
    """The signal that ends a leg for this reason."""
    return _Interrupted(next(number for number, reason in REASONS.items() if reason[0] is code))


def leftover(folder: Path) -> None:
    """The run's controller still lives."""
    start_ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    host = MarkerHost(
        machine_id_sha256="a" * 64, boot_id=boot_id, controller_pid=os.getpid(), controller_start_ticks=start_ticks
    )
    paths = write_run(folder / RUN_NAME, host).paths
    seal_aborted(paths.root, Abortion("killed", NOTHING_SHA256, CLOCK))


def leg_crashed(folder: Path) -> None:
    """A fault of ours inside the leg: an order that asks nothing, which no order is."""
    place = LegPlace.new(folder)
    run(place, requests=place.order().requests.model_copy(update={"prompts": ()}))
    raise LegFailed(Problem(Code(code), "leg", "", "", "") for code in codes_of(place.exit().problems))


def secret_found(folder: Path) -> None:
    """A server prints the value of a secret variable."""
    (folder / "server.log").write_text("token a-token-of-hf-42\n")
    Secrets.of_environment({"HF_TOKEN": "a-token-of-hf-42"}).refuse(folder)


def exists(folder: Path) -> None:
    """A file is written a second time."""
    write_once(folder / "file", b"")
    write_once(folder / "file", b"")


def write_failed(folder: Path) -> None:
    """A file in no folder."""
    write_once(folder / "absent" / "file", b"")


def read_failed(folder: Path) -> None:
    """A file goes away before it is its turn to be hashed."""
    closed = write_run(folder / RUN_NAME)
    with while_hashed(large(closed, 12)[0], late(closed).unlink):
        seal_run(closed, NOTHING_SHA256)


def open_writer(folder: Path) -> None:
    """A process can still write into a log that is sealed."""
    closed = write_run(folder / RUN_NAME)
    with closed.paths.leg(1, "A1").server_log.open("ab"):
        seal_run(closed, NOTHING_SHA256)


def forbidden_file(folder: Path) -> None:
    """A link among the files of a run."""
    closed = write_run(folder / RUN_NAME)
    log = closed.paths.leg(1, "A1").server_log
    log.unlink()
    log.symlink_to("/etc/hostname")
    seal_run(closed, NOTHING_SHA256)


def extra_file(folder: Path) -> None:
    """A file that came after the seal."""
    sealed = write_sealed_run(folder / RUN_NAME)
    sealed.paths.leg(1, "A1").maps.write_bytes(b"")
    open_sealed_run(sealed.root)


def missing_file(folder: Path) -> None:
    """A file that went after the seal."""
    sealed = write_sealed_run(folder / RUN_NAME)
    sealed.paths.journal.unlink()
    open_sealed_run(sealed.root)


def size_mismatch(folder: Path) -> None:
    """A file that was cut short after the seal."""
    sealed = write_sealed_run(folder / RUN_NAME)
    spoil(sealed.paths.leg(1, "A1").server_log, b"read")
    open_sealed_run(sealed.root)


def digest_mismatch(folder: Path) -> None:
    """A file with as many other bytes."""
    sealed = write_sealed_run(folder / RUN_NAME)
    spoil(sealed.paths.leg(1, "A1").server_log, b"READY\n")
    open_sealed_run(sealed.root)


def changed_while_read(folder: Path) -> None:
    """A file appears while the others are hashed."""
    closed = write_run(folder / RUN_NAME)
    leg = closed.paths.leg(1, "A1")
    with while_hashed(leg.wire_bytes(2), leg.maps.touch):
        seal_run(closed, NOTHING_SHA256)


def manifest_form(_folder: Path) -> None:
    """The second column of `sha256sum --binary`."""
    parse_manifest(b"0" * 64 + b" *data/outcome.json\n", "manifest-sha256.txt")


def unsealed(folder: Path) -> None:
    """No seal."""
    open_sealed_run(write_run(folder / RUN_NAME).paths.root)


def seal_form(folder: Path) -> None:
    """A statement that says more than its form has room for."""
    sealed = write_sealed_run(folder / RUN_NAME)
    spoil(sealed.paths.seal, canonical_json(strict_json(sealed.paths.seal.read_bytes(), "seal") | {"extra": 1}))
    open_sealed_run(sealed.root)


def seal_foreign(folder: Path) -> None:
    """The seal of another run of the same packet."""
    for name in ("one", "other"):
        (folder / name).mkdir()
    sealed = write_sealed_run(folder / "one" / RUN_NAME)
    other = write_sealed_run(folder / "other" / RUN_NAME)
    spoil(sealed.paths.seal, other.paths.seal.read_bytes())
    open_sealed_run(sealed.root)


def record_form(_folder: Path) -> None:
    """A marker that was torn."""
    Marker.from_json(b"{}\n", "marker")


def record_conflict(folder: Path) -> None:
    """The layout leaves out a file that the manifest has."""
    sealed = write_sealed_run(folder / RUN_NAME)
    sealed.paths.leg(1, "A1").maps.write_bytes(b"")
    digests = parse_manifest(sealed.paths.manifest.read_bytes(), "manifest")
    manifest = manifest_lines(digests | {"data/legs/01-A1/maps.txt": sha256_hex(b"")})
    spoil(sealed.paths.manifest, manifest)
    spoil(sealed.paths.tag_manifest, tag_manifest((sealed.root / "bag-info.txt").read_bytes(), manifest))
    open_sealed_run(sealed.root)


def analyzer_failed(folder: Path) -> None:
    """A packet that pins an analyzer which nobody knows."""
    closed = write_run(folder / RUN_NAME)
    packet = make_packet(analyzers=[{"name": "stranger", "sha256": "5" * 64}])
    spoil(closed.paths.packet / "packet.json", packet.canonical())
    judge_phase(closed.paths.root, folder / "bytecode")


def analyzers_disagree(folder: Path) -> None:
    """Two analyzers give two verdicts on one run."""
    first = analyze_run(RunBuilder().seal(folder), analyzer_identity())
    fields = {name: getattr(first, name) for name in Verdict.model_fields} | {"verdict": VerdictKind.INVALID}
    other = Verdict.model_validate({Verdict.model_fields[name].alias or name: one for name, one in fields.items()})
    raise BrokenEvidence(disagreements(first, other))


class _Interrupted:
    """The signal for it comes while a leg may end."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def __call__(self, _folder: Path) -> None:
        numbers = [*REASONS, signal.SIGHUP]
        before = {number: signal.getsignal(number) for number in numbers}
        interruption = Interruption()
        interruption.install()
        try:
            with interruption.allowed():
                signal.raise_signal(self._number)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _frozen(folder: Path) -> AuthorizationPaths:
    authorization = AuthorizationPaths(folder / "authorization")
    packet = make_packet()
    write_packet_folder(authorization.packets / packet.id, packet)
    authorization.root.chmod(0o700)
    return authorization


def _ready(folder: Path, *misbehaviour: str) -> None:
    port = free_port()
    argv = (sys.executable, "-I", "-P", str(FAKE_SERVER), "--port", str(port), "--served-model-name", "m")
    with _started(folder, argv + misbehaviour) as server:
        endpoints = Endpoints.model_validate(VOCABULARY.endpoints.model_dump())
        timeout_s = 1 if "--never-ready" in misbehaviour else 10
        plan = ReadyPlan(address="127.0.0.1", port=port, endpoints=endpoints, timeout_s=timeout_s, served_name="m")
        await_ready(plan, server, CLOCK)


@contextmanager
def _started(folder: Path, argv: tuple[str, ...]) -> Iterator[ServerProcess]:
    log = ServerLog(folder / "server.log", 1 << 20, lambda: None)
    server = ServerProcess.start(ServerCommand(argv=argv, environment={}, working=str(folder)), log, CLOCK)
    try:
        yield server
    finally:
        server.stop(3, CLOCK)
        log.close()


def _measure(folder: Path, row: list[Step]) -> None:
    with StreamServer(COUNTERS, row, COUNTERS) as server:
        plan = SessionPlan(
            host=server.host,
            port=server.port,
            path="/v1/completions",
            metrics_path="/metrics",
            metrics_timeout_s=0.3,
            limits=RowLimits(read_s=0.2, drain_s=0.2),
            requests=(PlannedRequest(prompt_id="p1", body=b"{}"),),
        )
        measure_prompts(plan, LegPaths(folder), CLOCK, lambda _row, _closed: None)
