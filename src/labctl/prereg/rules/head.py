"""Rules that hold for every campaign without a server: class, reviews, cards, sources, environment."""

from collections.abc import Callable, Iterator, Mapping

from labctl.prereg.any_campaign import CardPreregistration
from labctl.prereg.environment import RANK_VARIABLES, SELECTING_VARIABLES, holds_password, objection_to
from labctl.prereg.finding import Anchor, Finding
from labctl.prereg.model import CampaignClass
from labctl.prereg.places import TreePath
from labctl.prereg.rules.cards import named_cards_are_counted
from labctl.prereg.rules.claims import (
    record_has_reviewers,
    signatures_have_signers,
    unsigned_is_exploratory,
    waiver_is_for_records,
)
from labctl.prereg.rules.names import repeated
from labctl.prereg.rules.service import patch_series_start_somewhere
from labctl.prereg.sources import GitSource

SELECTING = frozenset({*SELECTING_VARIABLES, *RANK_VARIABLES})


def class_makes_no_timing_claim(said: CardPreregistration) -> Iterator[Finding]:
    """Calibration and comparison speak of speed, which nothing here measures."""
    if said.campaign_class not in (CampaignClass.EXPLORATORY, CampaignClass.RECORD):
        got = f"{said.campaign_class}, for a {said.kind}"
        yield Finding(("class",), "exploratory or record", got, "write exploratory, or record")


def cards_are_counted(said: CardPreregistration) -> Iterator[Finding]:
    """Named cards are as many as the count, and none is named twice."""
    yield from named_cards_are_counted(("cards",), said.cards)


def names_of_sources_and_checks_are_unique(said: CardPreregistration) -> Iterator[Finding]:
    """Sources and host checks are named once each."""
    sources = [source.git if isinstance(source, GitSource) else source.installed for source in said.sources]
    yield from repeated(("sources",), (), sources)
    yield from repeated(("host_checks",), ("name",), [check.name for check in said.host_checks])


def environment_findings(path: TreePath, environment: Mapping[str, str]) -> Iterator[Finding]:
    """No variable that labctl sets, that loads code, that selects a card, or that names a secret."""
    for name, value in environment.items():
        objection = "which labctl sets to give each process its card" if name in SELECTING else objection_to(name)
        if objection:
            yield Finding(
                (*path, name), "a variable of the engine", f"{name}, {objection}", "remove it", anchor=Anchor.KEY
            )
        if holds_password(value):
            got = "an address with one"
            yield Finding((*path, name), "no password in what is published", got, "remove it")


HEAD_RULES: tuple[Callable[[CardPreregistration], Iterator[Finding]], ...] = (
    class_makes_no_timing_claim,
    cards_are_counted,
    names_of_sources_and_checks_are_unique,
    patch_series_start_somewhere,
    unsigned_is_exploratory,
    signatures_have_signers,
    waiver_is_for_records,
    record_has_reviewers,
)
