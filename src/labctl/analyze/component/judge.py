"""All gates of a component run, in order: who ran, how its records hang together, which card, then the tensors."""

from dataclasses import dataclass

from labctl.analyze.card_evidence import CardEvidence
from labctl.analyze.component.address_space import read_address_space
from labctl.analyze.component.card_leg import CardLeg
from labctl.analyze.component.complete_rows import judge_complete_rows, judge_fresh
from labctl.analyze.component.devices import judge_devices, judge_discovery
from labctl.analyze.component.evidence import Worked
from labctl.analyze.component.identity import judge_identity
from labctl.analyze.component.layouts import judge_layouts
from labctl.analyze.component.linkage import judge_linkage
from labctl.analyze.component.microcases import judge_microcases
from labctl.analyze.component.pointers import judge_pointers
from labctl.analyze.component.rows_exact import judge_rows_exact
from labctl.analyze.component.weights import judge_first_caches, judge_weights
from labctl.analyze.figures import figure
from labctl.analyze.gates.findings import Findings
from labctl.analyze.gates.judge import Judged
from labctl.analyze.gates.turns import judge_turns
from labctl.prereg.component_model import ComponentPreregistration, component_gate_id
from labctl.records.verdict import CardOutcome, CardResult, GateOutcome

ALWAYS = ("identity", "linkage", "devices", "complete_rows")
ORDER = (*ALWAYS, "layouts", "pointers", "weights_unchanged", "microcases", "rows_exact")


@dataclass(frozen=True, slots=True)
class JudgedCards:
    """Every gate's outcome, and what became of each card."""

    judged: Judged
    cards: tuple[CardOutcome, ...]


@dataclass(frozen=True, slots=True)
class _Bench:
    """What the gates write to, by kind, and what they look at."""

    evidence: CardEvidence[CardLeg]
    said: ComponentPreregistration
    found: dict[str, Findings]


def registered_gates(said: ComponentPreregistration) -> tuple[tuple[str, str], ...]:
    """Id and kind of every gate that a verdict must hold, in the order in which they are looked at."""
    gates = [(component_gate_id(gate), str(gate.kind)) for gate in said.gates]
    kinds = {kind for _, kind in gates}
    always = [(kind, kind) for kind in ALWAYS if kind not in kinds]
    return tuple(sorted((*always, *gates), key=lambda gate: ORDER.index(gate[1])))


def judge_component(evidence: CardEvidence[CardLeg], said: ComponentPreregistration) -> JudgedCards:
    """Judge every gate over every card that is there."""
    gates = registered_gates(said)
    found = {kind: Findings(kind, kind) for _, kind in gates}
    bench = _Bench(evidence, said, found)
    _judge_legs(bench)
    every = {leg.name: worked for leg in evidence.legs if (worked := leg.worked(said)) is not None}
    assertions = {leg: _judge_worked(bench, worked) for leg, worked in every.items()}
    judge_fresh(found["complete_rows"], every.values())
    for leg in (name for name in evidence.order if name not in every):
        for findings in found.values():
            findings.lacks(f"{leg}: no whole record of its worker")
    if (exact := found.get("rows_exact")) is not None and every:
        exact.add([figure("assertions", "", sum(assertions.values()), "count")])
    outcomes = tuple(_named(found[kind], name) for name, kind in gates)
    return JudgedCards(Judged(outcomes, frozenset()), _cards(bench, every, assertions))


def _judge_legs(bench: _Bench) -> None:
    evidence, found = bench.evidence, bench.found
    selected = judge_discovery(found["devices"], bench.said.cards, evidence.discovery)
    for leg in evidence.legs:
        judge_identity(found["identity"], evidence, bench.said, leg)
        judge_linkage(found["linkage"], evidence, leg)
        if leg.index <= len(selected):
            judge_devices(found["devices"], evidence, leg, selected[leg.index - 1])
        else:
            found["devices"].lacks(f"{leg.name}: the registered card is not there")
    judge_turns(found["identity"], evidence.legs)


def _judge_worked(bench: _Bench, worked: Worked) -> int:
    """Judge what one worker wrote; gives the pairs of tensors that were found equal."""
    found, said = bench.found, bench.said
    leg = next(leg for leg in bench.evidence.legs if leg.name == worked.leg)
    judge_complete_rows(found["complete_rows"], worked)
    judge_first_caches(found["complete_rows"], worked)
    if "layouts" in found:
        judge_layouts(found["layouts"], worked)
    if "pointers" in found:
        judge_pointers(found["pointers"], worked, read_address_space(leg.maps or ()))
    if "weights_unchanged" in found and said.checkpoint is not None:
        judge_weights(found["weights_unchanged"], worked, said.checkpoint)
    if "microcases" in found:
        judge_microcases(found["microcases"], worked)
    return judge_rows_exact(found["rows_exact"], worked)


def _cards(bench: _Bench, every: dict[str, Worked], assertions: dict[str, int]) -> tuple[CardOutcome, ...]:
    legs = {leg.name: leg for leg in bench.evidence.legs}
    blamed = {_subject(text) for found in bench.found.values() for text in _told(found)}
    cards = []
    for name in bench.evidence.order:
        leg = legs.get(name)
        is_whole = leg is not None and leg.is_closed and name in every
        is_blamed = not {name, "run"}.isdisjoint(blamed)
        result = CardResult.NOT_RUN if not is_whole else CardResult.FAILED if is_blamed else CardResult.EXACT
        identity = leg.order.card.identity if leg is not None and leg.order is not None else ""
        rows = len(every[name].rows) if name in every else 0
        cards.append(
            CardOutcome(leg=name, identity=identity, result=result, rows=rows, assertions=assertions.get(name, 0))
        )
    return tuple(cards)


def _named(found: Findings, gate_id: str) -> GateOutcome:
    found.gate_id = gate_id
    return found.outcome()


def _told(found: Findings) -> list[str]:
    return [*(miss.where for miss in found.misses), *found.gaps]


def _subject(text: str) -> str:
    """The leg, or the run, that a miss or a gap speaks of: its first word."""
    return text.split(maxsplit=1)[0].rstrip(":,")
