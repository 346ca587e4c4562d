"""What a packet of a component or a probe is to run, in lines for reviewers."""

from collections.abc import Iterator
from typing import assert_never

from labctl.prereg.any_campaign import CardPreregistration
from labctl.prereg.component_model import ComponentPreregistration, component_gate_id
from labctl.prereg.probe_model import ProbePreregistration


def card_lines(said: CardPreregistration) -> Iterator[str]:
    """Cards, and what runs on them."""
    cards = said.cards
    named = cards.identities if isinstance(cards.identities, str) else ", ".join(cards.identities)
    yield f"  cards: {cards.count} of {cards.vendor}, {named}"
    match said:
        case ComponentPreregistration():
            yield from _component(said)
        case ProbePreregistration():
            yield from _probe(said)
        case _:
            assert_never(said)


def _component(said: ComponentPreregistration) -> Iterator[str]:
    worker = said.worker
    yield f"  order {' '.join(said.order)}, one leg a card, at most {worker.timeout_s} s each"
    cases = ", ".join(case.name for case in said.cases)
    yield f"  rows a leg: {said.row_count}: arms {', '.join(said.arms)}; cases {cases}; {said.repeats} repeats"
    for name, value in sorted(worker.environment.items()):
        yield f"    {name}={value}"
    places = [boundary.name for boundary in said.boundaries]
    places += [] if said.caches is None else [f"every {said.caches.name}"]
    yield f"  control and candidate are compared at: {', '.join(places)}"
    yield f"  microcases: {', '.join(microcase.name for microcase in said.microcases) or 'none'}"
    yield f"  gates: {', '.join(component_gate_id(gate) for gate in said.gates)}"


def _probe(said: ProbePreregistration) -> Iterator[str]:
    asked, timeouts = said.collective, said.timeouts
    yield f"  one {asked.operation} of {asked.elements} {asked.dtype} over {said.ranks} ranks, {said.backend}"
    yield f"  at most {timeouts.stage_s} s a stage and {timeouts.total_s} s in all"
    for name, value in sorted(said.environment.items()):
        yield f"    {name}={value}"
