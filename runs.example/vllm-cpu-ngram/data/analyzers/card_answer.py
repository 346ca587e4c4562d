"""The verdicts of components and probes: gates in order, the first line that holds, what became of each card."""

from . import card_gates, component_gates, probe_gates
from .card_reading import CardRun, CardRunLeg
from .component_gates import Card
from .gate_findings import Gate
from .sealed_files import Doc

OF_EVIDENCE = ("identity", "linkage", "devices", "complete_rows")
KINDS = (*OF_EVIDENCE, "layouts", "pointers", "weights_unchanged", "microcases", "rows_exact")
OF_WORKERS = KINDS[3:]


def judge_card_run(run: CardRun) -> Doc:
    """What a verdict says of this kind of campaign alone."""
    run.problems += run.contradictions()
    run.problems = list(dict.fromkeys(run.problems))
    return _probe(run) if run.prereg["kind"] == "probe" else _component(run)


def _component(run: CardRun) -> Doc:
    ids: dict[str, list[str]] = {}
    for said in run.prereg["gates"]:
        ids.setdefault(said["kind"], []).append(said["id"] or said["kind"])
    gates = {kind: Gate(kind, kind) for kind in KINDS if kind in ids or kind in OF_EVIDENCE}
    cards = [card for leg in run.card_legs if (card := _card(run, leg)) is not None]
    selected = card_gates.discovered(gates["devices"], run)
    for leg in run.card_legs:
        card_gates.identity(gates["identity"], run, leg)
        card_gates.linkage(gates["linkage"], run, leg)
        card_gates.devices(gates["devices"], run, leg, selected[leg.index - 1] if leg.index <= len(selected) else None)
    card_gates.in_turn(gates["identity"], run)
    for card in cards:
        for kind in (kind for kind in OF_WORKERS if kind in gates):
            getattr(component_gates, kind)(gates[kind], card)
    component_gates.fresh(gates["complete_rows"], cards)
    for name in (name for name in run.order if name not in {card.leg for card in cards}):
        for gate in gates.values():
            gate.knows(None, name, "a whole record of its worker")
    equal = {one["where"]: int(one["value"]) for one in gates["rows_exact"].figures if one["name"] == "assertions"}
    if cards:
        gates["rows_exact"].note("", "count", assertions=sum(equal.values()))
    named = [told for kind, gate in gates.items() for told in _under(gate, ids.get(kind, [kind]))]
    kind, because = _decide(run, list(gates.values()))
    software = {card.record["versions"]["torch"] for card in cards if card.record["versions"]}
    return {
        "verdict": kind,
        "because": because,
        "engine": f"torch {', '.join(sorted(software)) or 'not imported'}",
        "gates": named,
        "cards": [_outcome(run, name, gates, cards, equal) for name in run.order],
    }


def _card(run: CardRun, leg: CardRunLeg) -> Card | None:
    seal, record, rows = (
        leg.records.get("pre-import.json"),
        leg.records.get("component.json"),
        leg.lines.get("rows.jsonl"),
    )
    if seal is None or record is None or rows is None:
        return None
    return Card(leg.name, run.prereg, seal, rows, record, leg.files.get("maps.txt", b""))


def _under(gate: Gate, ids: list[str]) -> list[Doc]:
    return [{**gate.answer(), "id": name} for name in ids]


def _outcome(run: CardRun, name: str, gates: dict[str, Gate], cards: list[Card], equal: dict[str, int]) -> Doc:
    leg = next((one for one in run.card_legs if one.name == name), None)
    card = next((one for one in cards if one.leg == name), None)
    texts = [text for gate in gates.values() for text in (*(miss["where"] for miss in gate.misses), *gate.gaps)]
    blamed = {text.split()[0].rstrip(":,") for text in texts}
    result = "component_failed" if blamed & {name, "run"} else "exact_component_pass"
    order = leg.records.get("order.json") if leg else None
    return {
        "leg": name,
        "identity": order["card"]["identity"] if order else "",
        "result": result if leg and leg.manifest_sha256 and card else "not_run",
        "rows": len(card.rows) if card else 0,
        "assertions": equal.get(name, 0),
    }


def _unsound(run: CardRun, gates: list[Gate], of_evidence: tuple[str, ...]) -> list[str]:
    reasons, ended = list(run.problems), run.outcome
    if ended is None or ended["cause"] == "evidence":
        reasons.append("no outcome is there, or evidence could not be written")
    if not run.is_aborted:
        reasons += [str(gate) for gate in gates if gate.result == "not_evaluated"]
        reasons += [str(gate) for gate in gates if gate.result == "failed" and gate.kind in of_evidence]
    return reasons


def _decide(run: CardRun, gates: list[Gate]) -> tuple[str, list[str]]:
    invalid, failed = _unsound(run, gates, OF_EVIDENCE), [str(gate) for gate in gates if gate.result == "failed"]
    if invalid:
        return "invalid", invalid
    if run.is_aborted:
        return "infrastructure_abort_after_measurement_start", _aborted(run)
    if run.packet["kind"] == "rehearsal":
        return "rehearsal_only", ["the packet is a rehearsal's", *failed]
    return (
        ("component_failed", failed)
        if failed
        else (f"exact_{len(run.order)}_card_component_pass", ["every gate passed"])
    )


def _aborted(run: CardRun) -> list[str]:
    ended = run.outcome or {}
    going_on = [leg.name for leg in run.card_legs if leg.name not in ended.get("legs_closed", [])]
    return [f"aborted ({ended.get('cause')}) in {', '.join(going_on) or 'no leg'}", *ended.get("detail", [])]


def _probe(run: CardRun) -> Doc:
    gates, probe = probe_gates.judge(run)
    named = {gate.kind: gate for gate in gates}
    failed = [str(gate) for gate in gates if gate.result != "passed"]
    kind, because = probe["stage_class"], failed or ["every rank proved every stage and exited with status 0"]
    is_harness = kind == "harness_failure"
    unsound = _unsound(run, gates, ("identity", "devices"))
    is_open = run.problems or run.outcome is None
    if unsound and (not is_harness or is_open):
        kind, because = "invalid", unsound
    elif run.is_aborted and (run.outcome or {}).get("cause") != "leg_failed":
        kind, because = "infrastructure_abort_after_measurement_start", _aborted(run)
    elif run.packet["kind"] == "rehearsal":
        kind, because = "rehearsal_only", [f"the packet is a rehearsal's; class {probe['stage_class']}", *failed]
    lines = [line for lines in (run.card_legs[0].lines.values() if run.card_legs else ()) for line in lines]
    software = {line["detail"]["torch"] for line in lines if line.get("stage") == "import-done"}
    return {
        "verdict": kind,
        "because": because,
        "engine": f"torch {', '.join(sorted(software)) or 'not imported'}",
        "gates": [named[one].answer() for one in probe_gates.KINDS],
        "probe": probe,
    }
