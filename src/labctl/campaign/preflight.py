"""Preflight: everything that can be checked without side effects, before the marker; every fault is reported at once."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.campaign.roots import Roots
from labctl.clock import Clock
from labctl.codes import Code
from labctl.errors import LabctlError, PreflightFailed, Problem
from labctl.host.boot import boot_id, machine_id_sha256
from labctl.host.idle import cpu_busy_percent
from labctl.host.storage import file_system_type, free_bytes, open_trusted_folder
from labctl.ledger import find_consumed
from labctl.marker import MarkerAbsent, read_marker_state
from labctl.packet.in_place import verify_packet_in_place
from labctl.packet.review import ReviewedPacket
from labctl.prereg.model import CampaignClass
from labctl.records.marker import Finding, PreflightPassed
from labctl.servers.sockets import prove_port_free

MIB = 1 << 20
SOCKET_PATH_LIMIT_BYTES = 107
LONGEST_SOCKET_NAME_BYTES = 48
VOLATILE = ("overlay", "tmpfs")


@dataclass(frozen=True, slots=True)
class PreflightRequest:
    """What preflight looks at."""

    reviewed: ReviewedPacket
    """The packet."""
    roots: Roots
    """Where labctl would write."""
    clock: Clock
    """For the idle window."""
    announce: Callable[[str], None]
    """Tells people what happens now."""
    rehearsal_seal_sha256: str | None
    """The seal of a rehearsal of this very packet with the real service, where there is one."""


@dataclass(frozen=True, slots=True)
class _Look:
    """One check: what must hold, what was found, and what to do where it does not."""

    name: str
    code: Code
    expected: str
    observed: str
    is_met: bool
    do: str


def run_preflight(request: PreflightRequest) -> PreflightPassed:
    """Look at everything, without a side effect.

    Raises:
        PreflightFailed: with every check that does not hold.
    """
    looks = tuple(_every_look(request))
    drift = verify_packet_in_place(request.reviewed.packet, request.roots.repository, request.announce)
    failed = [*(_problem(look) for look in looks if not look.is_met), *drift]
    if failed:
        raise PreflightFailed(failed)
    findings = [
        Finding(check=look.name, expected=look.expected, observed=look.observed, is_met=look.is_met) for look in looks
    ]
    findings.append(
        Finding(check="in_place", expected="sources, models, interpreter as frozen", observed="equal", is_met=True)
    )
    return PreflightPassed(
        packet_sha256=request.reviewed.packet_id,
        findings=tuple(findings),
        file_systems={name: file_system_type(_existing(folder)) for name, folder in _folders(request.roots)},
        rehearsal_seal_sha256=request.rehearsal_seal_sha256,
    )


def _every_look(request: PreflightRequest) -> Iterator[_Look]:
    yield from _unspent(request)
    yield from _storage(request)
    yield from _trust(request)
    yield _host(request)
    yield _socket_path(request)
    yield from _port(request)
    yield from _rehearsal(request)
    yield from _idle(request)


def _unspent(request: PreflightRequest) -> Iterator[_Look]:
    packet_id = request.reviewed.packet_id
    state = read_marker_state(request.roots.authorization, packet_id)
    yield _Look(
        "marker",
        Code.CONSUMED,
        "no marker",
        "none" if isinstance(state, MarkerAbsent) else type(state).__name__,
        isinstance(state, MarkerAbsent),
        "freeze a new attempt with --follows",
    )
    line = find_consumed(request.roots.authorization.ledger, packet_id)
    yield _Look(
        "ledger",
        Code.CONSUMED,
        "no line for this packet",
        "none" if line is None else f"line {line.seq}",
        line is None,
        "freeze a new attempt with --follows",
    )


def _storage(request: PreflightRequest) -> Iterator[_Look]:
    profile = request.reviewed.packet.host
    is_record = request.reviewed.packet.preregistration.campaign_class is not CampaignClass.EXPLORATORY
    allowed = [kind for kind in profile.storage.allowed if not (is_record and kind in VOLATILE)]
    for name, folder in _folders(request.roots):
        found = file_system_type(_existing(folder))
        yield _Look(
            f"file_system.{name}",
            Code.UNSAFE_ROOT,
            f"one of {', '.join(allowed)}",
            found,
            found in allowed,
            f"put {folder} on another file system, or allow it in the host profile",
        )
    free = free_bytes(_existing(request.roots.runs)) // MIB
    yield _Look(
        "free_space",
        Code.DISK_FULL,
        f"at least {profile.storage.min_free_mib} MiB free",
        f"{free} MiB",
        free >= profile.storage.min_free_mib,
        f"free space on the file system of {request.roots.runs}",
    )


def _trust(request: PreflightRequest) -> Iterator[_Look]:
    for name, folder in _folders(request.roots):
        try:
            os.close(open_trusted_folder(_existing(folder), request.roots.anchor))
        except LabctlError as error:
            for problem in error.problems:
                yield _Look(f"trusted.{name}", problem.code, problem.expected, problem.got, False, problem.do)
        else:
            yield _Look(f"trusted.{name}", Code.UNSAFE_ROOT, "own folders only", "own folders only", True, "")


def _host(request: PreflightRequest) -> _Look:
    known = bool(boot_id()) and bool(machine_id_sha256())
    return _Look("host", Code.PREFLIGHT, "a boot id and a machine id", "found" if known else "none", known, "set both")


def _socket_path(request: PreflightRequest) -> _Look:
    longest = len(os.fsencode(request.roots.scratch / ("0" * 8) / "A99" / "tmp")) + 1 + LONGEST_SOCKET_NAME_BYTES
    return _Look(
        "socket_path",
        Code.PREFLIGHT,
        f"at most {SOCKET_PATH_LIMIT_BYTES} bytes for a socket in a start's TMPDIR",
        f"{longest} bytes",
        longest <= SOCKET_PATH_LIMIT_BYTES,
        "set a shorter roots.scratch in the host profile",
    )


def _port(request: PreflightRequest) -> Iterator[_Look]:
    network = request.reviewed.packet.host.network
    if network.port == 0:
        yield _Look("port", Code.PORT_TAKEN, "a free port for each start", "picked when a leg starts", True, "")
        return
    try:
        prove_port_free(network.address, network.port)
    except LabctlError as error:
        for problem in error.problems:
            yield _Look("port", problem.code, problem.expected, problem.got, False, problem.do)
    else:
        yield _Look("port", Code.PORT_TAKEN, f"port {network.port} free", "free", True, "")


def _rehearsal(request: PreflightRequest) -> Iterator[_Look]:
    preregistration = request.reviewed.packet.preregistration
    if request.reviewed.packet.kind == "rehearsal" or preregistration.campaign_class is not CampaignClass.RECORD:
        return
    waived = preregistration.rehearsal_waived
    seal = request.rehearsal_seal_sha256
    yield _Look(
        "rehearsal",
        Code.REHEARSAL_MISSING,
        "a sealed rehearsal of this campaign with the real service",
        f"waived: {waived}" if waived else (seal or "none"),
        waived is not None or seal is not None,
        "run `labctl rehearse CAMPAIGN --service real`",
    )


def _idle(request: PreflightRequest) -> Iterator[_Look]:
    idle = request.reviewed.packet.host.idle
    if idle.window_s == 0:
        yield _Look("idle", Code.HOST_BUSY, "an idle host", "not measured, as registered", True, "")
        return
    request.announce(f"measuring load for {idle.window_s} s")
    busy = cpu_busy_percent(idle.window_s, request.clock)
    yield _Look(
        "idle",
        Code.HOST_BUSY,
        f"at most {idle.max_cpu_percent} % of all CPUs busy",
        f"{busy:.1f} %",
        busy <= idle.max_cpu_percent,
        "end what else runs, or wait",
    )


def _folders(roots: Roots) -> tuple[tuple[str, Path], ...]:
    return (
        ("authorization", roots.authorization.root),
        ("runs", roots.runs),
        ("analyses", roots.analyses),
        ("scratch", roots.scratch),
    )


def _existing(folder: Path) -> Path:
    """The folder, or the nearest parent that exists: preflight creates nothing."""
    while not folder.exists():
        folder = folder.parent
    return folder


def _problem(look: _Look) -> Problem:
    return Problem(look.code, f"preflight {look.name}", look.expected, look.observed, look.do)
