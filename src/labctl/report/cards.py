"""What a report says of cards and of a probe: one line each, and a table."""

from labctl.records.verdict import Verdict
from labctl.report.blocks import table
from labctl.report.escape import markdown

CARD_HEADER = ("leg", "card", "result", "rows", "equal pairs of tensors")


def card_lines(verdict: Verdict) -> list[str]:
    """The cards, or how far the probe came, for a terminal; the probe's line comes last."""
    lines = [
        f"{card.leg}: {card.result.value} ({card.identity or 'no card recorded'}), "
        f"{card.rows} rows, {card.assertions} equal pairs of tensors"
        for card in verdict.cards or ()
    ]
    if verdict.cards is not None:
        lines.append(f"assertions: {sum(card.assertions for card in verdict.cards)}")
    return [*lines, *([verdict.probe.line] if verdict.probe is not None else [])]


def card_table(verdict: Verdict) -> list[str]:
    """The same as Markdown; nothing where the campaign has no cards."""
    lines = [] if verdict.probe is None else [f"**{markdown(verdict.probe.line)}**", ""]
    if verdict.cards is None:
        return lines
    rows = [
        (card.leg, markdown(card.identity), card.result.value, str(card.rows), str(card.assertions))
        for card in verdict.cards
    ]
    return [*table(CARD_HEADER, rows), "", *lines]
