"""Gates on the machine during a start; each public function is named after a kind."""

from fractions import Fraction

from .gate_findings import Gate
from .record_forms import require_form
from .run_reading import Leg, Run
from .sealed_files import Broken, Doc, document


def steady_host(gate: Gate, run: Run, said: Doc) -> None:
    """Between rows the machine stays within what was registered."""
    for leg in run.legs:
        samples = _samples(run, leg)
        if gate.knows(samples, leg.name, "one sound sample before the first row and one after each"):
            load = Fraction(max(sample["load_1m_milli"] for sample in samples), 1000)
            memory = min(sample["memory_available_bytes"] for sample in samples)
            clock = min(min(sample["cpu_frequency_mhz"], default=0) for sample in samples) or None
            gate.note(leg.name, "", highest_load=load, lowest_memory_available_bytes=memory)
            if clock is not None:
                gate.note(leg.name, "MHz", lowest_cpu_mhz=clock)
            if said["max_load"] is not None:
                gate.holds(leg.name, f"load {float(load)}", is_met=load <= Fraction(said["max_load"]))
            for floor, value in ((said["min_memory_available_bytes"], memory), (said["min_cpu_mhz"], clock)):
                if floor is not None and gate.knows(value, leg.name, "a quantity that is bounded"):
                    gate.holds(leg.name, f"{value} of at least {floor}", is_met=value >= floor)


def _samples(run: Run, leg: Leg) -> list[Doc] | None:
    lines = run.files.get(f"legs/{leg.folder}/telemetry.jsonl", b"").splitlines()
    try:
        found = [require_form("telemetry.jsonl", document(line, "telemetry"), "telemetry") for line in lines]
    except Broken:
        return None
    return found if [sample["row"] for sample in found] == list(range(len(leg.rows) + 1)) else None
