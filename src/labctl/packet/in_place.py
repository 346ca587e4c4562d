"""Hold the machine against a packet again: before the marker, before each start and after each stop."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from labctl.errors import LabctlError, Problem
from labctl.packet.contents import Progress
from labctl.packet.drift import differences
from labctl.packet.frozen_source import freeze_source, source_name
from labctl.packet.interpreter import InterpreterFacts, ask_interpreter, describe_interpreter, interpreter_path
from labctl.packet.model import Packet
from labctl.packet.pinned_model import verify_pinned_binaries, verify_pinned_model
from labctl.packet.tool import analyzer_identity, standalone_identity, tool_identity


def verify_packet_in_place(packet: Packet, repository: Path, progress: Progress) -> tuple[Problem, ...]:
    """Every difference between the machine and the packet: sources, models, interpreter, and labctl's own files."""
    progress("hashing labctl's own files")
    problems = [*differences("labctl", packet.tool, tool_identity)]
    looks = {look().name: look for look in (analyzer_identity, standalone_identity)}
    for pinned in packet.analyzers:
        if pinned.name in looks:
            problems += differences(f"analyzer {pinned.name}", pinned, looks[pinned.name])
    try:
        facts = ask_interpreter(interpreter_path(packet.host, packet.interpreter.key, repository))
    except LabctlError as error:
        return (*problems, *error.problems)
    progress("hashing the interpreter")
    key = packet.interpreter.key
    problems += differences(f"interpreter {key}", packet.interpreter, lambda: describe_interpreter(facts, key))
    problems += _sources(packet, repository, facts, progress)
    problems += [*_models(packet, repository, progress), *_binaries(packet, repository, progress)]
    return tuple(problems)


def _sources(packet: Packet, repository: Path, facts: InterpreterFacts, progress: Progress) -> Iterator[Problem]:
    for declared, frozen in zip(packet.preregistration.sources, packet.sources, strict=True):
        progress(f"hashing source {source_name(declared)}")
        look = partial(freeze_source, declared, packet.host.sources, repository, facts)
        yield from differences(f"source {source_name(declared)}", frozen, look)


def _models(packet: Packet, repository: Path, progress: Progress) -> Iterator[Problem]:
    for frozen in packet.models:
        progress(f"hashing model {frozen.name}")
        yield from differences(
            f"model {frozen.name}", frozen, partial(verify_pinned_model, packet, repository, frozen.name)
        )


def _binaries(packet: Packet, repository: Path, progress: Progress) -> Iterator[Problem]:
    for frozen in packet.binaries:
        progress(f"hashing compiled files {frozen.name}")
        look = partial(verify_pinned_binaries, packet, repository, frozen.name)
        yield from differences(f"compiled files {frozen.name}", frozen, look)
