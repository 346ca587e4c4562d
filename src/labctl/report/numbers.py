"""Numbers as people read them: four significant digits and milliseconds; the exact values stand beside them."""

from decimal import Context, Decimal

from labctl.records.verdict import Figure

SHORT_DIGITS = 4
SHORT_CHARACTERS = 6
NS_PER_MS = 1_000_000
LONGEST_EXACT = 40
NANOSECONDS = "ns"
UNITS = {"percent": "%", NANOSECONDS: "ms"}
"""Units that people read otherwise than the figures state them."""


def short(one: Figure | None) -> str:
    """The value to four significant digits, at least its whole integer part, times in ms; empty where there is none."""
    if one is None:
        return ""
    if len(full(one)) <= SHORT_CHARACTERS:
        return full(one)
    value = _scaled(one)
    digits = max(SHORT_DIGITS, len(f"{abs(int(value))}"))
    return f"{Context(prec=digits).plus(value).normalize():f}"


def full(one: Figure | None) -> str:
    """The value to its twelve digits, times in ms; empty where there is none."""
    return "" if one is None else f"{_scaled(one).normalize():f}"


def signed(one: Figure) -> str:
    """The short value with its sign and unit."""
    text = short(one)
    return f"{text if text.startswith('-') else f'+{text}'} {unit(one)}"


def unit(one: Figure) -> str:
    """The unit of a shown value."""
    return UNITS.get(one.unit, one.unit)


def exact(one: Figure) -> str:
    """The exact value; a fraction too long to read is only in the verdict's JSON."""
    return f"`{one.value}`" if len(one.value) <= LONGEST_EXACT else "in `verdict.json`"


def _scaled(one: Figure) -> Decimal:
    value = Decimal(one.decimal)
    return value / NS_PER_MS if one.unit == NANOSECONDS else value
