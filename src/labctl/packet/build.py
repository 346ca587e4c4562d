"""Put everything that freezing found into one packet."""

from labctl.digest import sha256_hex
from labctl.packet.attempts import Attempt
from labctl.packet.contents import Ground, Subject
from labctl.packet.engine import FrozenEngine
from labctl.packet.environment import environment_allowed
from labctl.packet.model import HostCheckResult, Packet
from labctl.packet.tool import analyzer_identity, tool_identity


def build_packet(
    subject: Subject, ground: Ground, found: tuple[FrozenEngine, tuple[HostCheckResult, ...]], attempt: Attempt
) -> Packet:
    """Put everything that was found into one packet."""
    engine, checks = found
    return Packet(
        kind=subject.kind,
        service=subject.service,
        attempt=attempt.number,
        follows=attempt.follows,
        preregistration=subject.preregistration,
        prereg_yaml_sha256=sha256_hex(subject.yaml),
        repository=ground.facts,
        files=tuple(pinned.file for pinned in subject.inputs),
        sources=engine.sources,
        models=engine.models,
        interpreter=engine.interpreter,
        tool=tool_identity(),
        analyzers=(analyzer_identity(),),
        host=subject.host,
        engine_sha256=sha256_hex(engine.vocabulary.canonical()),
        host_checks=checks,
        environment_allowed=environment_allowed(subject.preregistration, subject.host),
    )
