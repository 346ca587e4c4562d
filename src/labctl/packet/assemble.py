"""From a campaign's files to its packet on disk: verify the machine, run the host checks, write."""

from labctl.packet.attempts import Attempt
from labctl.packet.build import build_packet
from labctl.packet.class_rules import refuse_unfit_class
from labctl.packet.contents import Ground, Progress, Subject
from labctl.packet.engine import freeze_engine
from labctl.packet.folder import find_unspent_equal, write_packet
from labctl.packet.host_checks import run_host_checks
from labctl.packet.model import Packet
from labctl.rundir import AuthorizationPaths


def freeze_subject(
    subject: Subject, ground: Ground, place: tuple[AuthorizationPaths, Attempt], progress: Progress
) -> Packet:
    """Verify what runs on the machine, run the host checks, and write the packet.

    Raises:
        Refused: something is not as declared.
    """
    authorization, attempt = place
    engine = freeze_engine(subject, ground, progress)
    refuse_unfit_class(subject, engine.vocabulary)
    checks = run_host_checks(subject, ground, progress)
    packet = build_packet(subject, ground, (engine, checks), attempt)
    if equal := find_unspent_equal(packet, authorization):
        progress(f"this is packet {equal.id}, which was frozen before")
        return equal
    write_packet(packet, subject, engine.vocabulary.canonical(), authorization)
    return packet
