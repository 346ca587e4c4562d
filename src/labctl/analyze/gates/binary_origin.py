"""Part of gate `identity`: compiled files in which the arms differ come from the arm's own pinned folder alone."""

from labctl.analyze.binary_sets import MappedSet, mapped_set
from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.findings import Findings
from labctl.prereg.model import Arm
from labctl.prereg.treatment_kinds import BinariesTreatment


def judge_binary_origin(findings: Findings, evidence: RunEvidence) -> None:
    """Check every start's mapped files against the set of its arm."""
    if not isinstance(evidence.packet.preregistration.treatment, BinariesTreatment):
        return
    folders: dict[Arm, set[str]] = {arm: set() for arm in Arm}
    for leg in evidence.legs:
        found = mapped_set(evidence, leg)
        if found is None:
            findings.lacks(f"{leg.name}: no folder of compiled files, or no list of mapped files")
            continue
        folders[leg.arm].add(found.folder)
        _judge_start(findings, leg.name, found)
    shared = folders[Arm.CONTROL] & folders[Arm.CANDIDATE]
    findings.equal("folders of compiled files that both arms had", "run", set(), shared)
    for arm, known in folders.items():
        findings.holds(f"folders of compiled files in arm {arm}", "run", ("one", known), is_met=len(known) <= 1)


def _judge_start(findings: Findings, where: str, found: MappedSet) -> None:
    findings.holds("pinned files mapped from the arm's folder", where, ("at least one", found), is_met=bool(found.own))
    findings.equal("files mapped from the arm's folder that no manifest lists", where, (), found.unlisted)
    findings.equal("files of the set that were mapped from elsewhere", where, (), found.elsewhere)
