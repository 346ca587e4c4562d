"""Running a leg: the work order, the claim of the leg's folder, and what must hold before anything starts."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.clock import Clock
from labctl.codes import Code
from labctl.digest import sha256_file, sha256_hex
from labctl.durable import read_regular, write_once
from labctl.errors import PreflightFailed, Problem, Refused
from labctl.host.boot import boot_id, machine_id_sha256
from labctl.host.processes import own_identity
from labctl.packet.exported import exported_path
from labctl.records.any_order import AnyOrder, read_order
from labctl.records.card_order import CardOrder, ProbeOrder
from labctl.records.order import LegStarted, StartPaths, WorkOrder
from labctl.rundir import LegPaths
from labctl.servers.sockets import prove_port_free

ORDER_LIMIT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class OpenedOrder:
    """A work order as it was read, with the digest of its bytes."""

    order: AnyOrder
    sha256: str

    @property
    def leg(self) -> LegPaths:
        """Where the leg writes."""
        return LegPaths(Path(self.order.paths.leg))


def open_order(path: Path) -> OpenedOrder:
    """Read a work order.

    Raises:
        BrokenEvidence: it is absent, not a regular file, or not in its one strict format.
        PreflightFailed: it does not lie in the leg's folder that it names (PREFLIGHT).
    """
    data = read_regular(path, limit_bytes=ORDER_LIMIT_BYTES)
    opened = OpenedOrder(read_order(data, str(path)), sha256_hex(data))
    if opened.leg.order.resolve() != path.resolve():
        do = "give the leg the order that lies in its own folder"
        raise PreflightFailed(Problem(Code.PREFLIGHT, "order", str(opened.leg.order), str(path), do))
    return opened


def claim_leg(opened: OpenedOrder, clock: Clock) -> None:
    """Make this process the only one that ever works on the leg.

    Raises:
        Refused: another one has claimed it (ALREADY_STARTED).
    """
    own = own_identity()
    claim = LegStarted(
        leg=opened.order.leg,
        order_sha256=opened.sha256,
        pid=own.pid,
        start_ticks=own.start_ticks,
        boot_id=boot_id(),
        wall_ns=clock.realtime_ns(),
        mono_ns=clock.monotonic_ns(),
    )
    place = opened.leg.started
    try:
        write_once(place, claim.canonical())
    except Refused as error:
        do = "look at the run as it is; a leg is never started twice"
        raise Refused(
            Problem(Code.ALREADY_STARTED, str(place), "a leg that nobody has claimed", "a claim", do)
        ) from error


def require_place(order: WorkOrder) -> None:
    """The machine, the boot, the folders and the port are those of the order, and free.

    Raises:
        PreflightFailed: with every fault (WRONG_MACHINE, PREFLIGHT, PORT_TAKEN).
    """
    problems = [*_machine_problems(order), *_folder_problems(order.paths), *_port_problems(order)]
    if problems:
        raise PreflightFailed(problems)


def require_card_place(order: CardOrder) -> None:
    """The same for a leg on cards, whose code was exported beside its own folders.

    Raises:
        PreflightFailed: with every fault (WRONG_MACHINE, PREFLIGHT, PORT_TAKEN, FILE_DRIFT).
    """
    problems = [*_machine_problems(order), *_folder_problems(order.paths), *_code_problems(order)]
    if isinstance(order, ProbeOrder):
        problems += _port_problems(order)
    if problems:
        raise PreflightFailed(problems)


def _port_problems(order: WorkOrder | ProbeOrder) -> tuple[Problem, ...]:
    try:
        prove_port_free(order.address, order.port)
    except PreflightFailed as error:
        return error.problems
    return ()


def _code_problems(order: CardOrder) -> Iterator[Problem]:
    do = "look at who writes into the scratch folder"
    for role, digest in order.inputs.items():
        path = exported_path(Path(order.code), role)
        found = sha256_file(path)[0] if path.is_file() and not path.is_symlink() else "no file"
        if found != digest:
            yield Problem(Code.FILE_DRIFT, str(path), digest, found, do)


def _machine_problems(order: WorkOrder | CardOrder) -> list[Problem]:
    facts = (
        ("machine", order.machine_id_sha256, machine_id_sha256()),
        ("boot", order.boot_id, boot_id()),
    )
    do = "run the campaign on the machine and in the boot that consumed the packet"
    return [Problem(Code.WRONG_MACHINE, what, wanted, found, do) for what, wanted, found in facts if wanted != found]


def _folder_problems(paths: StartPaths) -> list[Problem]:
    scratch = Path(paths.scratch)
    inner = tuple(Path(text) for text in (paths.cache, paths.temporary, paths.home, paths.working))
    problems = [
        _folder(path, "an empty folder directly in the scratch folder") for path in inner if not _is_new(path, scratch)
    ]
    if Path(paths.leg).is_relative_to(scratch):
        problems.append(_folder(scratch, "a folder outside the run"))
    elif {path.name for path in inner} != _names(scratch):
        problems.append(_folder(scratch, "a folder that holds the start's own folders and nothing else"))
    return problems


def _is_new(path: Path, scratch: Path) -> bool:
    return path.parent == scratch and path.is_dir() and not path.is_symlink() and not _names(path)


def _names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()


def _folder(path: Path, expected: str) -> Problem:
    got = ", ".join(sorted(_names(path))[:5]) or ("nothing in it" if path.is_dir() else "no folder")
    return Problem(Code.PREFLIGHT, str(path), expected, got, "give each start new folders")
