"""How the arms of a comparison differed, in words: measured and not judged."""

from labctl.prereg.model import CampaignClass
from labctl.records.verdict import Figure, Verdict
from labctl.report.blocks import bullets
from labctl.report.numbers import short, signed, unit

TITLE = "Differences between the arms, measured and not judged"
SAID = {
    "kv_capacity_ratio": "tokens that the cache holds",
    "resident_bytes_gain": "resident memory",
    "acceptance_rate_difference": "acceptance rate",
    "differing_rows": "rows that differ",
}
FIRST = "first_difference"
SHOWN_ROWS = 8


def differences(verdict: Verdict) -> list[str]:
    """The section; nothing where the campaign is no comparison."""
    lines = difference_lines(verdict)
    return ["## What differs", "", *bullets(TITLE, lines)] if lines else []


def difference_lines(verdict: Verdict) -> list[str]:
    """One line a difference; nothing where the campaign is no comparison."""
    if verdict.campaign_class is not CampaignClass.COMPARISON:
        return []
    lines = [f"{SAID[one.name]}: {_shown(one)}" for one in verdict.effect if one.name in SAID]
    places = [f"{one.where} at token {one.value}" for one in verdict.effect if one.name == FIRST]
    more = f" and {len(places) - SHOWN_ROWS} more rows" if len(places) > SHOWN_ROWS else ""
    return [*lines, *([f"first difference, from 0: {', '.join(places[:SHOWN_ROWS])}{more}"] if places else [])]


def _shown(one: Figure) -> str:
    if one.unit == "ratio":
        return f"{short(one)} times ({one.where})"
    is_count = one.name == "differing_rows"
    return f"{short(one)} {unit(one)} ({one.where})" if is_count else f"{signed(one)} ({one.where})"
