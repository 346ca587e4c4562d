"""One fault a code that legs on cards meet."""

from pathlib import Path

from labctl.codes import Code
from labctl.errors import LegFailed, Problem
from tests.fakes.card_leg import CardLegPlace, run_order
from tests.fakes.leg import codes_of


def worker_failed(folder: Path) -> None:
    """A worker on a card ends with a failure."""
    _run(folder, "--fail", "4")


def worker_timeout(folder: Path) -> None:
    """A worker on a card does not end."""
    _run(folder, "--hang")


def _run(folder: Path, *misbehaviour: str) -> None:
    place = CardLegPlace.new(folder)
    run_order(place, place.component_order(*misbehaviour, limits={"timeout_s": 1}))
    raise LegFailed(Problem(Code(code), "leg", "", "", "") for code in codes_of(place.exit().problems))
