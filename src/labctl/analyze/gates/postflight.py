"""Gate `postflight`: every process of a start ended when it was asked, and left nothing."""

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.findings import Findings
from labctl.prereg.cards import CardVendor
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.host_profile import Devices
from labctl.prereg.start_gates import PostflightClean
from labctl.records.leg import Postflight
from labctl.records.verdict import GateOutcome

MIB = 1 << 20


def judge_postflight(evidence: RunEvidence, gate: PostflightClean) -> GateOutcome:
    """Judge what was left after the stop of every start, and what had to be killed."""
    findings = Findings(gate_id(gate), gate.kind)
    for leg in evidence.legs:
        found = leg.postflight
        if found is None:
            findings.lacks(f"{leg.name}: no record of what was left")
            continue
        findings.equal("processes that had to be killed", leg.name, (), found.killed)
        findings.equal("processes left", leg.name, (), found.processes_left)
        findings.equal("listening sockets left", leg.name, (), found.listeners_left)
        findings.equal("shared memory left", leg.name, (), found.shared_memory_left)
        _judge_cards(findings, leg.name, found, evidence.packet.host.devices)
    return findings.outcome()


def _judge_cards(findings: Findings, where: str, found: Postflight, devices: Devices | None) -> None:
    """Memory of the cards that the host profile watches is back where it was, within the profile's slack."""
    if devices is None or devices.idle_cards is None or devices.idle_cards.vendor is CardVendor.CPU:
        return
    if len(found.device_memory) < devices.idle_cards.count:
        known = len(found.device_memory)
        findings.lacks(f"{where}: the memory of {known} of {devices.idle_cards.count} watched cards is recorded")
    for card in found.device_memory:
        limit = card.before_bytes + devices.memory_slack_mib * MIB
        sides = (f"at most {limit} bytes, as before with the registered slack", card.after_bytes)
        findings.holds(f"memory of card {card.identity}", where, sides, is_met=card.after_bytes <= limit)
