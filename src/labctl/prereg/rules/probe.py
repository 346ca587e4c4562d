"""Rules for probes: a rank a card, a backend that the cards have, and stages that fit into the whole."""

from collections.abc import Iterator

from labctl.prereg.cards import CardVendor
from labctl.prereg.finding import Finding
from labctl.prereg.probe_model import ProbePreregistration
from labctl.prereg.rules.head import HEAD_RULES, environment_findings

BACKENDS = {
    CardVendor.CPU: ("gloo",),
    CardVendor.NVIDIA: ("nccl", "gloo"),
    CardVendor.INTEL: ("xccl", "gloo"),
}


def each_rank_has_a_card(said: ProbePreregistration) -> Iterator[Finding]:
    """One process a card."""
    if said.ranks != said.cards.count:
        do = "write the same number"
        yield Finding(("ranks",), f"{said.cards.count}, the count of the cards", str(said.ranks), do)


def backend_fits_the_cards(said: ProbePreregistration) -> Iterator[Finding]:
    """A backend reaches the cards of its vendor."""
    fitting = BACKENDS[said.cards.vendor]
    if said.backend not in fitting:
        expected = f"{' or '.join(fitting)} for {said.cards.vendor} cards"
        yield Finding(("backend",), expected, said.backend, "correct it, or choose other cards")


def stages_fit_into_the_whole(said: ProbePreregistration) -> Iterator[Finding]:
    """A stage that may take longer than everything is not bounded by its own time-out."""
    if said.timeouts.stage_s > said.timeouts.total_s:
        expected = f"at most {said.timeouts.total_s}, the seconds of the whole probe"
        yield Finding(("timeouts", "stage_s"), expected, str(said.timeouts.stage_s), "lower it, or raise total_s")


def rank_environment_is_harmless(said: ProbePreregistration) -> Iterator[Finding]:
    """Nothing that labctl sets, that loads code, that selects a card, or that names a secret."""
    yield from environment_findings(("environment",), said.environment)


PROBE_RULES = (
    *HEAD_RULES,
    each_rank_has_a_card,
    backend_fits_the_cards,
    stages_fit_into_the_whole,
    rank_environment_is_harmless,
)


def probe_findings(said: ProbePreregistration) -> Iterator[Finding]:
    """Everything that contradicts itself within one probe."""
    for rule in PROBE_RULES:
        yield from rule(said)
