"""Gate `clean_log`: the server's log holds nothing that a clean log does not hold, and what it must hold."""

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.findings import Findings
from labctl.analyze.gates.log_expectations import ExpectedLines, as_text, check_lines
from labctl.analyze.log_lines import LineMatches, find_lines, log_chunks
from labctl.prereg.gate_kinds import CleanLog, RequirePattern, gate_id
from labctl.prereg.model import Arm
from labctl.records.verdict import GateOutcome

SHOWN_BYTES = 200


def judge_clean_log(evidence: RunEvidence, gate: CleanLog) -> GateOutcome:
    """Judge the log of every start, line by line, by byte patterns."""
    findings = Findings(gate_id(gate), gate.kind)
    deny = [*evidence.engine.deny_patterns, *(one.pattern for one in gate.deny)]
    unknown = evidence.engine.unknown_environment_pattern
    patterns = [*deny, unknown, *(one.pattern for one in gate.require)]
    for leg in evidence.legs:
        if leg.log is None:
            findings.lacks(f"{leg.name}: no server log")
            continue
        found = find_lines(log_chunks(leg.log), patterns)
        for pattern in deny:
            _deny(findings, f"line matching {pattern!r}", leg.name, found[pattern])
        for required in gate.require:
            check_lines(findings, leg.name, found[required.pattern], _expected(required, leg))
        findings.figures.append(figure("unknown_environment_lines", leg.name, found[unknown].count, "lines"))
        if gate.unknown_environment == "fail":
            _deny(findings, "warning of an unknown environment variable", leg.name, found[unknown])
    return findings.outcome()


def _expected(required: RequirePattern, leg: LegEvidence) -> ExpectedLines:
    own = required.control if leg.arm is Arm.CONTROL else required.candidate
    groups = {**dict(as_text(required.groups)), **dict(as_text(own))}
    return ExpectedLines(required.pattern, required.count, required.ranks, tuple(sorted(groups.items())))


def _deny(findings: Findings, what: str, where: str, found: LineMatches) -> None:
    shown = "none" if found.first is None else f"{found.count}, first: {found.first[:SHOWN_BYTES]!r}"
    findings.equal(what, where, "none", shown)
