"""Rule sets that are compared: labctl's default for records, the seed's, and a naive comparison of two means."""

from enum import StrEnum

import numpy as np
from scipy.special import stdtr

from labctl.prereg.field_types import MetricId
from labctl.prereg.statistics_gates import Separation, record_rules
from labctl.simulate.cells import BASE_RATE, Floats

METRIC = MetricId.DECODE_RATE_CONVENTIONAL_1_100
PLANNED_EFFECT_PERCENT = "2"
ALPHA = "0.05"
FLOOR_PERCENT = "0.25"


class RuleSet(StrEnum):
    """How a campaign is decided."""

    DEFAULT = "default"
    SEED = "seed"
    NAIVE = "naive"


def gates_of_rules(rules: RuleSet) -> list[dict[str, object]]:
    """The timing gates of a rule set, as a campaign file writes them."""
    match rules:
        case RuleSet.DEFAULT:
            return [gate.model_dump(mode="json") for gate in record_rules()]
        case RuleSet.SEED:
            separation = Separation(kind="separation", margin_percent="0")
            return [_pair(), separation.model_dump(mode="json")]
        case RuleSet.NAIVE:
            return []


def decision_of_rules(rules: RuleSet) -> dict[str, object]:
    """What counts; the seed's rules ask for 0.25 % over a record, here the speed of an undisturbed control start."""
    decision: dict[str, object] = {"headline": METRIC.value, "reported_value": "lower_candidate_start"}
    if rules is RuleSet.SEED:
        decision |= {"record_to_beat": f"{BASE_RATE:g}", "floor_over_record_percent": FLOOR_PERCENT}
    return decision


def naive_passes(rates: Floats, order: tuple[str, ...]) -> bool:
    """A one-sided t test at 5 % between all rows of B and all rows of A, as if each row were an independent run."""
    is_candidate = np.array([leg.startswith("B") for leg in order])
    candidates, controls = rates[is_candidate].ravel(), rates[~is_candidate].ravel()
    variance = candidates.var(ddof=1) / len(candidates) + controls.var(ddof=1) / len(controls)
    statistic = (candidates.mean() - controls.mean()) / np.sqrt(variance)
    return bool(1 - stdtr(len(candidates) + len(controls) - 2, statistic) < float(ALPHA))


def _pair() -> dict[str, object]:
    return {
        "kind": "pair",
        "metric": METRIC.value,
        "min_row_wins": 7,
        "min_headline_gain_percent": FLOOR_PERCENT,
        "min_median_paired_gain_percent": FLOOR_PERCENT,
    }
