"""What speculation gave, from counts: proposed and accepted tokens, by round and by position."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from labctl.analyze.counters import CounterDelta
from labctl.analyze.figures import figure
from labctl.records.verdict import Figure

POSITIONS = "accepted_per_position"
MS_PER_S = 1000


@dataclass(frozen=True, slots=True)
class Speculation:
    """Counts of one start, or of several together."""

    drafts: Fraction
    draft_tokens: Fraction
    accepted: Fraction
    by_position: tuple[Fraction, ...] = ()
    """Accepted tokens at each position of a draft, from the first."""

    @property
    def acceptance_rate(self) -> Fraction | None:
        """Accepted tokens over proposed ones; None where nothing was proposed."""
        return self.accepted / self.draft_tokens if self.draft_tokens else None

    @property
    def accepted_per_cycle(self) -> Fraction | None:
        """Accepted tokens a round; None where there was none."""
        return self.accepted / self.drafts if self.drafts else None

    @property
    def emitted_per_cycle(self) -> Fraction | None:
        """Each round emits one token of its own and what was accepted."""
        accepted = self.accepted_per_cycle
        return None if accepted is None else 1 + accepted

    @property
    def survival(self) -> tuple[Fraction, ...]:
        """The share of rounds in which the token at each position was accepted."""
        return tuple(count / self.drafts for count in self.by_position) if self.drafts else ()

    def __add__(self, other: "Speculation") -> "Speculation":
        """Both together; a position that one of them lacks counts for nothing there."""
        length = max(len(self.by_position), len(other.by_position))
        sides = ((*one.by_position, *[Fraction(0)] * (length - len(one.by_position))) for one in (self, other))
        summed = tuple(a + b for a, b in zip(*sides, strict=True))
        draft_tokens = self.draft_tokens + other.draft_tokens
        return Speculation(self.drafts + other.drafts, draft_tokens, self.accepted + other.accepted, summed)

    def rates(self, where: str) -> Iterator[Figure]:
        """The rates that are defined, as figures."""
        rates = (
            ("acceptance_rate", self.acceptance_rate, "share"),
            ("accepted_per_cycle", self.accepted_per_cycle, "tokens"),
            ("emitted_per_cycle", self.emitted_per_cycle, "tokens"),
        )
        return (figure(name, where, value, unit) for name, value, unit in rates if value is not None)

    def survival_figures(self, where: str) -> Iterator[Figure]:
        """The survival of each position, as figures."""
        return (figure(f"survival_{place}", where, value, "share") for place, value in enumerate(self.survival))


def speculation_of(delta: CounterDelta) -> Speculation | None:
    """What the counters of a start say; None where any of them is absent before and after."""
    fields = ("drafts", "draft_tokens", "accepted_tokens")
    counts = [None if delta.is_absent(field) else delta.grown(field) for field in fields]
    drafts, draft_tokens, accepted = counts
    if drafts is None or draft_tokens is None or accepted is None:
        return None
    return Speculation(drafts, draft_tokens, accepted, accepted_by_position(delta))


def accepted_by_position(delta: CounterDelta) -> tuple[Fraction, ...]:
    """Accepted tokens at each position, in the order of the positions."""
    found = delta.grown_by_label(POSITIONS, "position")
    return tuple(found[place] for place in sorted(found, key=lambda place: (len(place), place)))


def cycle_ms(decode_seconds: Fraction, drafts: Fraction) -> Fraction:
    """Milliseconds that one round takes, by the server's own clock."""
    return decode_seconds * MS_PER_S / drafts
