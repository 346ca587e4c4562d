"""Gate `steady_host`: between rows the machine stays within registered bounds, in every start."""

from fractions import Fraction

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.findings import Findings
from labctl.errors import MalformedRecord
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.start_gates import SteadyHost
from labctl.records.leg import Telemetry
from labctl.records.verdict import Figure, GateOutcome


def judge_steady_host(evidence: RunEvidence, gate: SteadyHost) -> GateOutcome:
    """Judge the samples of every start: one before its first row, one after each."""
    findings = Findings(gate_id(gate), gate.kind)
    for leg in evidence.legs:
        samples = _samples(leg)
        if samples is None:
            findings.lacks(f"{leg.name}: one sound sample before the first row and one after each")
            continue
        load, memory, clock = _figures(leg.name, samples)
        findings.add(one for one in (load, memory, clock) if one is not None)
        if gate.max_load is not None:
            is_met = Fraction(load.value) <= Fraction(gate.max_load)
            findings.holds(load.name, leg.name, (f"at most {gate.max_load}", load.value), is_met=is_met)
        _judge_floor(findings, leg.name, gate.min_memory_available_bytes, memory)
        _judge_floor(findings, leg.name, gate.min_cpu_mhz, clock)
    return findings.outcome()


def _samples(leg: LegEvidence) -> tuple[Telemetry, ...] | None:
    try:
        found = tuple(Telemetry.from_json(line, "telemetry") for line in (leg.telemetry or b"").splitlines())
    except MalformedRecord:
        return None
    return found if [sample.row for sample in found] == list(range(len(leg.rows) + 1)) else None


def _figures(leg: str, samples: tuple[Telemetry, ...]) -> tuple[Figure, Figure, Figure | None]:
    """The worst sample of each quantity; no clock where the host does not say one."""
    load = Fraction(max(sample.load_1m_milli for sample in samples), 1000)
    memory = min(sample.memory_available_bytes for sample in samples)
    clock = min(min(sample.cpu_frequency_mhz, default=0) for sample in samples)
    return (
        figure("highest_load", leg, load, "1"),
        figure("lowest_memory_available_bytes", leg, memory, "bytes"),
        figure("lowest_cpu_mhz", leg, clock, "MHz") if clock else None,
    )


def _judge_floor(findings: Findings, leg: str, floor: int | None, worst: Figure | None) -> None:
    if floor is None:
        return
    if worst is None:
        findings.lacks(f"{leg}: this host does not say what is bounded by {floor}")
        return
    is_met = Fraction(worst.value) >= floor
    findings.holds(worst.name, leg, (f"at least {floor}", worst.value), is_met=is_met)
