"""What freezing finds out about the machine, and what it runs, before a packet can be written."""

from dataclasses import dataclass

from labctl.packet.class_rules import refuse_unfit_class
from labctl.packet.contents import EndpointSubject, Ground, Progress, Subject
from labctl.packet.engine import FrozenEngine, freeze_engine, freeze_worker_side
from labctl.packet.environment import environment_allowed
from labctl.packet.good_log import hold_against_good_logs
from labctl.packet.host_checks import run_host_checks
from labctl.packet.model import HostCheckResult, PinnedAnalyzer, Tool
from labctl.packet.tool import analyzer_identities, tool_identity


@dataclass(frozen=True, slots=True)
class VerifiedMachine:
    """Everything in a packet that does not come from the campaign's files."""

    engine: FrozenEngine
    host_checks: tuple[HostCheckResult, ...]
    tool: Tool
    analyzers: tuple[PinnedAnalyzer, ...]
    environment_allowed: tuple[str, ...]


def verify_machine(subject: Subject, ground: Ground, progress: Progress) -> VerifiedMachine:
    """Verify what runs on the machine, then run the host checks.

    Raises:
        Refused: something is not as declared, or a check fails.
    """
    return VerifiedMachine(
        engine=_engine(subject, ground, progress),
        host_checks=run_host_checks(subject, ground, progress),
        tool=tool_identity(),
        analyzers=analyzer_identities(),
        environment_allowed=environment_allowed(subject.preregistration, subject.host),
    )


def _engine(subject: Subject, ground: Ground, progress: Progress) -> FrozenEngine:
    if not isinstance(subject, EndpointSubject):
        return freeze_worker_side(subject, ground, progress)
    engine = freeze_engine(subject, ground, progress)
    if engine.vocabulary is not None:
        refuse_unfit_class(subject, engine.vocabulary)
        hold_against_good_logs(subject, ground, engine.vocabulary, progress)
    return engine
