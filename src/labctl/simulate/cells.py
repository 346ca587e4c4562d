"""Cells of the simulation: how starts and rows scatter, what disturbs them, and what the treatment truly does."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from labctl.prereg.designs import Design, order_of

Floats = npt.NDArray[np.float64]
PROMPTS = 13
BASE_RATE = 100.0
"""Tokens per second of a control start without noise."""
TAIL_DF = 3
"""Degrees of freedom of heavy-tailed starts, scaled to the cell's SD."""
HUNDRED = 100


class Disturbance(StrEnum):
    """What happens to the host beside independent noise; magnitudes are in the cell."""

    NONE = "none"
    LINEAR = "linear drift"
    U_SHAPED = "U-shaped drift"
    WARM_UP = "warm-up"
    HEAVY_TAILS = "heavy tails"
    BAD_START = "one bad start"


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of campaign; everything in percent."""

    start_sd: float
    row_sd: float
    disturbance: Disturbance = Disturbance.NONE
    magnitude: float = 0.0
    """Linear: last start over first. U: middle over ends. Warm-up: first start below the rest, halved each start.
    Bad start: how much slower one start is, any of them."""
    effect: float = 0.0
    """The true gain of the candidate."""
    design: Design = Design.ABBA
    prompt_sd: float = 0.0
    """How far prompts lie apart, the same in every start; where it is large, the median is one prompt's noise."""

    @property
    def order(self) -> tuple[str, ...]:
        """The legs."""
        return order_of(self.design)

    @property
    def name(self) -> str:
        """The cell in words."""
        what = "" if self.disturbance is Disturbance.NONE else f", {self.disturbance}"
        size = f" {self.magnitude:g} %" if self.magnitude else ""
        effect = f", effect {self.effect:g} %" if self.effect else ""
        prompts = f", prompt SD {self.prompt_sd:g} %" if self.prompt_sd else ""
        noise = f"start SD {self.start_sd:g} %, row SD {self.row_sd:g} %{prompts}"
        return f"{len(self.order)} starts, {noise}{what}{size}{effect}"


def draw_rates(cell: Cell, campaigns: int, random: np.random.Generator) -> Floats:
    """Rates in tokens/s of some campaigns, by campaign, start (in the order of the legs) and prompt."""
    starts = len(cell.order)
    prompts = random.normal(0, cell.prompt_sd / HUNDRED, size=(campaigns, 1, PROMPTS))
    level = (_start_noise(cell, (campaigns, starts), random) + _disturbance(cell, campaigns, random))[:, :, None]
    gain = math.log1p(cell.effect / HUNDRED)
    treated = np.array([gain if leg.startswith("B") else 0.0 for leg in cell.order])[None, :, None]
    rows = random.normal(0, cell.row_sd / HUNDRED, size=(campaigns, starts, PROMPTS))
    rates: Floats = BASE_RATE * np.exp(prompts + level + treated + rows)
    return rates


def _start_noise(cell: Cell, shape: tuple[int, int], random: np.random.Generator) -> Floats:
    sd = cell.start_sd / HUNDRED
    if cell.disturbance is Disturbance.HEAVY_TAILS:
        scale = sd / math.sqrt(TAIL_DF / (TAIL_DF - 2))
        return np.asarray(random.standard_t(TAIL_DF, size=shape) * scale)
    return random.normal(0, sd, size=shape)


def _disturbance(cell: Cell, campaigns: int, random: np.random.Generator) -> Floats:
    """What is added to each start, in logs."""
    starts, size = len(cell.order), cell.magnitude / HUNDRED
    places = np.linspace(0, 1, starts)
    added = np.zeros((campaigns, starts))
    match cell.disturbance:
        case Disturbance.LINEAR:
            added += size * places
        case Disturbance.U_SHAPED:
            curve = (places - 0.5) ** 2  # the innermost starts lie `size` above the ends
            added += size * (curve.max() - curve) / (curve.max() - curve.min())
        case Disturbance.WARM_UP:
            added -= size * 0.5 ** np.arange(starts)
        case Disturbance.BAD_START:
            added[np.arange(campaigns), random.integers(0, starts, size=campaigns)] -= size
        case Disturbance.NONE | Disturbance.HEAVY_TAILS:
            pass
    return added
