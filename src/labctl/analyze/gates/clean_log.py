"""Gate `clean_log`: the server's log holds nothing that a clean log does not hold, and what it must hold."""

import re

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.findings import Findings
from labctl.prereg.gate_kinds import CleanLog, RequirePattern, gate_id
from labctl.records.verdict import GateOutcome

SHOWN_BYTES = 200


def judge_clean_log(evidence: RunEvidence, gate: CleanLog) -> GateOutcome:
    """Judge the log of every start, line by line, by byte patterns."""
    findings = Findings(gate_id(gate), gate.kind)
    deny = [*evidence.engine.deny_patterns, *(one.pattern for one in gate.deny)]
    for leg in evidence.legs:
        if leg.log is None:
            findings.lacks(f"{leg.name}: no server log")
            continue
        lines = log_lines(leg.log)
        for pattern in deny:
            _deny(findings, f"line matching {pattern!r}", leg.name, matching_lines(lines, pattern))
        for required in gate.require:
            _require(findings, leg.name, required, len(matching_lines(lines, required.pattern)))
        unknown = matching_lines(lines, evidence.engine.unknown_environment_pattern)
        findings.figures.append(figure("unknown_environment_lines", leg.name, len(unknown), "lines"))
        if gate.unknown_environment == "fail":
            _deny(findings, "warning of an unknown environment variable", leg.name, unknown)
    return findings.outcome()


def log_lines(log: bytes) -> list[bytes]:
    """The lines of a log: they end at LF; a CR before it is no part of them."""
    return [line.removesuffix(b"\r") for line in log.split(b"\n")]


def matching_lines(lines: list[bytes], pattern: str) -> list[bytes]:
    """The lines in which a byte pattern is found, case-sensitive."""
    compiled = re.compile(pattern.encode())
    return [line for line in lines if compiled.search(line)]


def _deny(findings: Findings, what: str, where: str, lines: list[bytes]) -> None:
    shown = f"{len(lines)}, first: {lines[0][:SHOWN_BYTES]!r}" if lines else "none"
    findings.equal(what, where, "none", shown)


def _require(findings: Findings, where: str, required: RequirePattern, count: int) -> None:
    what = f"lines matching {required.pattern!r}"
    if required.count is None:
        findings.holds(what, where, ("at least 1", count), is_met=count >= 1)
    else:
        findings.equal(what, where, required.count, count)
