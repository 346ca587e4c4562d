"""Contradictions between the records of a run as a whole: packet, marker, journal, outcome, phase answers."""

from collections.abc import Iterator
from itertools import pairwise

from labctl.analyze.evidence import RunEvidence, conflict, differences
from labctl.analyze.files import EvidenceFiles
from labctl.analyze.lane_facts import lane_conflicts
from labctl.analyze.run_facts import RunFacts
from labctl.digest import sha256_hex
from labctl.errors import Problem
from labctl.packet.model import Packet
from labctl.packet.tool import STANDALONE_NAME, standalone_sha256
from labctl.prereg.any_campaign import schedule_of
from labctl.protocol import FIRST_PAIR, Event, Progress
from labctl.records.run import OutcomeKind

COPIES = "analyzers/"


def packet_conflicts(evidence: RunEvidence) -> Iterator[Problem]:
    """What packet and marker say of each other, where servers were started."""
    yield from marker_conflicts(evidence)
    yield from lane_conflicts(evidence)


def marker_conflicts(evidence: RunFacts) -> Iterator[Problem]:
    """What packet and marker say of each other."""
    packet, marker = evidence.packet, evidence.marker
    yield from differences(
        "data/packet",
        [
            ("canonical form of the packet", sha256_hex(packet.canonical()), evidence.packet_id),
            ("packet of the marker", evidence.packet_id, marker.packet_sha256),
            ("kind of the marker", packet.kind, marker.kind),
            ("order of the marker", evidence.order, marker.order),
            ("commit of the marker", packet.repository.commit, marker.git_commit),
            ("tree of the marker", packet.repository.tree_dirhash, marker.tree_dirhash),
            ("prereg digest of the marker", packet.prereg_yaml_sha256, marker.prereg_sha256),
        ],
    )


def pinned_conflicts(packet: Packet, files: EvidenceFiles) -> Iterator[Problem]:
    """Copies beside the packet that are not what it pins."""
    names = files.names()
    pinned = {
        "packet/prereg.yaml": packet.prereg_yaml_sha256,
        **({} if packet.engine_sha256 is None else {"packet/engine.json": packet.engine_sha256}),
        **{f"packet/inputs/{file.role}": file.sha256 for file in packet.files},
    }
    for name, sha256 in pinned.items():
        found = sha256_hex(files.read(name)) if name in names else "no such file"
        yield from differences("data", [(name, sha256, found)])
    analyzers = {analyzer.name: analyzer.sha256 for analyzer in packet.analyzers}
    copies = {name.removeprefix(COPIES): sha256_hex(files.read(name)) for name in names if name.startswith(COPIES)}
    yield from differences("data", [("analyzers", analyzers.get(STANDALONE_NAME, ""), standalone_sha256(copies))])


def journal_conflicts(evidence: RunFacts) -> Iterator[Problem]:
    """Steps that the protocol forbids, times that go back, and an outcome that the journal does not tell."""
    schedule = schedule_of(evidence.packet.preregistration)
    progress = Progress(evidence.order, schedule is not None and schedule.stop_after_first_pair)
    for entry in evidence.journal:
        try:
            progress = progress.advance(entry.event, entry.leg)
        except RuntimeError as error:
            yield conflict(f"data/journal.jsonl:{entry.seq + 1}", "a legal step", error)
            return
    for earlier, later in pairwise(evidence.journal):
        if later.mono_ns < earlier.mono_ns:
            yield conflict(f"data/journal.jsonl:{later.seq + 1}", f"a time after {earlier.mono_ns}", later.mono_ns)
    yield from _outcome_conflicts(evidence)
    yield from _closed_conflicts(evidence, progress)


def _outcome_conflicts(evidence: RunFacts) -> Iterator[Problem]:
    outcome = evidence.outcome
    if outcome is None:
        return
    events = [entry.event for entry in evidence.journal]
    closed = tuple(entry.leg for entry in evidence.journal if entry.event is Event.LEG_CLOSED)
    yield from differences("data/outcome.json", [("closed legs", closed, outcome.legs_closed)])
    if evidence.is_aborted:
        return  # a killed controller leaves its journal at any legal place
    has_stopped = outcome.outcome is OutcomeKind.PHASE_STOPPED
    yield from differences(
        "data/journal.jsonl",
        [
            ("last event", Event.RUN_CLOSED, events[-1] if events else None),
            ("phase_stopped is there", has_stopped, Event.PHASE_STOPPED in events),
        ],
    )


def _closed_conflicts(evidence: RunFacts, progress: Progress) -> Iterator[Problem]:
    wanted = evidence.order[: progress.closed_legs]
    closed = {leg.name for leg in evidence.legs if leg.is_closed}
    for name in wanted:
        if name not in closed:
            yield conflict(f"data/legs: {name}", "a closed leg, as the journal says", "no leg manifest")
    is_whole = evidence.outcome is not None and not evidence.is_aborted
    for leg in evidence.legs:
        if is_whole and leg.name not in wanted:
            yield conflict(f"data/legs/{leg.folder}", "no folder: the journal does not close this leg", "a folder")


def phase_conflicts(evidence: RunEvidence) -> Iterator[Problem]:
    """Phase answers that do not fit what was done after them, or speak of other legs."""
    events = [entry.event for entry in evidence.journal]
    is_answered = Event.PHASE_ANSWERED in events or Event.PHASE_STOPPED in events
    if not is_answered:
        return
    expected = sorted(analyzer.name for analyzer in evidence.packet.analyzers)
    yield from differences("data/phase1", [("analyzers", expected, sorted(one.analyzer for one in evidence.answers))])
    may_continue = all(answer.may_continue for answer in evidence.answers)
    yield from differences("data/phase1", [("continue", Event.PHASE_STOPPED not in events, may_continue)])
    pinned = {analyzer.name: analyzer.sha256 for analyzer in evidence.packet.analyzers}
    manifests = {leg.folder: leg.manifest_sha256 for leg in evidence.legs[:FIRST_PAIR]}
    for answer in evidence.answers:
        where = f"data/phase1/{answer.analyzer}.json"
        yield from differences(
            where,
            [("legs", manifests, answer.legs), ("analyzer", pinned.get(answer.analyzer), answer.analyzer_sha256)],
        )
