"""Patterns of log gates held against a log that is as it must be: the registered one, or the last rehearsal's."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import read_regular
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import BrokenEvidence, FreezeRefused, MalformedRecord, Problem
from labctl.packet.contents import EndpointSubject, Ground, Progress, good_log_role
from labctl.packet.machine import REHEARSALS
from labctl.packet.model import Packet
from labctl.prereg.gate_kinds import CleanLog, gate_id
from labctl.rundir import MANIFEST, SEAL

LIMIT_BYTES = 4 << 30
SHOWN_BYTES = 160


@dataclass(frozen=True, slots=True)
class GoodLog:
    """A log that is as it must be."""

    name: str
    lines: tuple[bytes, ...]


def hold_against_good_logs(
    subject: EndpointSubject, ground: Ground, engine: EngineVocabulary, progress: Progress
) -> None:
    """Refuse a pattern that would fail a good log.

    Raises:
        FreezeRefused: a denied pattern matches a line of a good log, or a required one matches none (RULE).
    """
    gates = [gate for gate in subject.preregistration.gates if isinstance(gate, CleanLog)]
    rehearsed = _rehearsed_logs(subject, ground.repository) if any(gate.good_log is None for gate in gates) else ()
    problems: list[Problem] = []
    for gate in gates:
        logs = rehearsed if gate.good_log is None else (_registered_log(subject, gate),)
        if not logs:
            progress(f"gate {gate_id(gate)}: no good log is registered or was rehearsed; its patterns are not tried")
        for log in logs:
            progress(f"gate {gate_id(gate)}: trying its patterns on {log.name}")
            problems += _problems(gate, engine, log)
    if problems:
        raise FreezeRefused(problems)


def _problems(gate: CleanLog, engine: EngineVocabulary, log: GoodLog) -> Iterator[Problem]:
    where = f"gate {gate_id(gate)}"
    for pattern in (*engine.deny_patterns, *(one.pattern for one in gate.deny)):
        if line := _first(log, pattern):
            got = f"{line[:SHOWN_BYTES]!r}"
            do = "narrow the expression, or rehearse until the log is clean"
            yield Problem(Code.RULE, where, f"no line of {log.name} that {pattern!r} denies", got, do)
    for required in gate.require:
        if _first(log, required.pattern) is None:
            expected = f"a line of {log.name} that {required.pattern!r} matches"
            yield Problem(Code.RULE, where, expected, "none", "correct the expression, or name another good log")


def _first(log: GoodLog, pattern: str) -> bytes | None:
    compiled = re.compile(pattern.encode())
    return next((line for line in log.lines if compiled.search(line)), None)


def _registered_log(subject: EndpointSubject, gate: CleanLog) -> GoodLog:
    return _good_log(str(gate.good_log), subject.input(good_log_role(gate)))


def _good_log(name: str, data: bytes) -> GoodLog:
    return GoodLog(name, tuple(line.removesuffix(b"\r") for line in data.split(b"\n")))


def _rehearsed_logs(subject: EndpointSubject, repository: Path) -> tuple[GoodLog, ...]:
    """The logs of the last sealed rehearsal of the campaign with the real service; a log counts as it was sealed."""
    rehearsals = repository / subject.host.roots.runs / REHEARSALS
    sealed = sorted(rehearsals.glob(f"*/{SEAL}"), key=lambda seal: seal.stat().st_mtime_ns, reverse=True)
    for seal in sealed:
        if _is_rehearsal_of(seal.parent, subject.preregistration.id):
            return tuple(_sealed_logs(seal.parent))
    return ()


def _is_rehearsal_of(run: Path, campaign: str) -> bool:
    try:
        data = read_regular(run / "data" / "packet" / "packet.json", limit_bytes=LIMIT_BYTES)
        packet = Packet.from_json(data, "packet.json")
    except (BrokenEvidence, MalformedRecord):
        return False
    return packet.service == "registered" and packet.preregistration.id == campaign


def _sealed_logs(run: Path) -> Iterator[GoodLog]:
    manifest = read_regular(run / MANIFEST, limit_bytes=LIMIT_BYTES).decode("utf-8", "replace").splitlines()
    digests = {line[66:]: line[:64] for line in manifest}
    for path in sorted(run.glob("data/legs/*/server.log")):
        data = read_regular(path, limit_bytes=LIMIT_BYTES)
        name = path.relative_to(run).as_posix()
        if digests.get(name) == sha256_hex(data):
            yield _good_log(f"{run.name}/{name}", data)
