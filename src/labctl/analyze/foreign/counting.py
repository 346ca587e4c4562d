"""Counters before and after, held against the rows: metrics, and every identity that must hold."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from labctl.analyze.counters import CounterDelta, Counters, parse_counters
from labctl.analyze.figures import exact_text, figure
from labctl.analyze.foreign.draft import ViewDraft
from labctl.analyze.foreign.folder import StartFolder
from labctl.analyze.foreign.told_rows import ToldRow
from labctl.analyze.speculation import Speculation, cycle_ms, speculation_of
from labctl.engines.foreign_lab import AFTER, BEFORE
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import MalformedRecord

MUST_BE_ZERO = (
    *("requests_succeeded", "prompt_tokens", "generation_tokens", "drafts", "draft_tokens", "accepted_tokens"),
    *("requests_running", "requests_waiting", "preemptions", "prefix_cache_hits"),
)
MUST_NOT_GROW = ("preemptions", "prefix_cache_hits", "process_start_time")
BAD_ENDS = frozenset({"abort", "error"})


def read_delta(folder: StartFolder, engine: EngineVocabulary) -> CounterDelta | None:
    """The counters of the start, where both sides can be read."""
    before, after = (_counters(folder, engine, name) for name in (BEFORE, AFTER))
    if before is None or after is None:
        return None
    return CounterDelta(before, after, frozenset(engine.off_when_absent))


def _counters(folder: StartFolder, engine: EngineVocabulary, name: str) -> Counters | None:
    data = folder.bytes_of(name, "counters, without which nothing is accounted for")
    try:
        return None if data is None else parse_counters(data, engine, name)
    except MalformedRecord as error:
        folder.draft.finds(name, "; ".join(f"{one.where}: {one.got}" for one in error.problems[:3]))
        return None


def look_at_counters(draft: ViewDraft, delta: CounterDelta, rows: Sequence[ToldRow], length: int | None) -> None:
    """Compute what counters give, and hold them against the rows.

    Args:
        draft: what is filled.
        delta: the counters before and after.
        rows: the rows, as another file tells them; empty where none does.
        length: tokens that a draft proposes, where that is told.
    """
    _hold_ends(draft, delta)
    _hold_rows(draft, delta, rows)
    counted = speculation_of(delta)
    if counted is None or not counted.drafts:
        draft.facts.append(("speculation", "no round was counted"))
        return
    _measure(draft, delta, counted)
    _hold_speculation(draft, counted, length)
    if rows:
        tokens = sum(row.completion_tokens for row in rows)
        most = tokens + len(rows) * (length or len(counted.by_position))
        sides = (f"at most {most}", exact_text(counted.drafts + counted.accepted))
        is_met = counted.drafts + counted.accepted <= most
        draft.holds("rounds and accepted tokens against the tokens of the rows", sides, is_met=is_met)


def _hold_ends(draft: ViewDraft, delta: CounterDelta) -> None:
    known = {name: value for name in MUST_BE_ZERO if (value := delta.before.total(name)) is not None}
    told = {name: exact_text(value) for name, value in known.items() if value}
    draft.holds(f"{len(known)} counters before the first row", ("0", told or "0"), is_met=bool(known) and not any(told))
    for name in MUST_NOT_GROW:
        grown = delta.grown(name)
        if grown is None:
            draft.missing.append(f"counter {name}: whether it moved")
        else:
            draft.equal(f"growth of {name}", "0", exact_text(grown))
    ends = delta.grown_by_label("requests_succeeded", "finished_reason")
    bad = sum((value for reason, value in ends.items() if reason in BAD_ENDS), Fraction(0))
    draft.equal("requests that ended in an error or were aborted", "0", exact_text(bad))


def _hold_rows(draft: ViewDraft, delta: CounterDelta, rows: Sequence[ToldRow]) -> None:
    if not rows:
        return
    sums = {
        "requests_succeeded": len(rows),
        "prompt_tokens": sum(row.prompt_tokens for row in rows),
        "generation_tokens": sum(row.completion_tokens for row in rows),
    }
    for name, told in sums.items():
        grown = delta.grown(name)
        draft.equal(f"growth of {name} against the rows", f"{told}", "absent" if grown is None else exact_text(grown))
        if grown is not None:
            draft.metrics.append(figure(name, "", grown, "count"))


def _measure(draft: ViewDraft, delta: CounterDelta, counted: Speculation) -> None:
    counts = (("drafts", counted.drafts), ("draft_tokens", counted.draft_tokens), ("accepted_tokens", counted.accepted))
    draft.metrics += [figure(name, "", value, "count") for name, value in counts]
    draft.metrics += counted.rates("")
    draft.metrics += counted.survival_figures("")
    seconds = delta.grown("request_decode_time_sum")
    if seconds is not None:
        draft.metrics.append(figure("cycle_ms", "", cycle_ms(seconds, counted.drafts), "ms"))


def _hold_speculation(draft: ViewDraft, counted: Speculation, length: int | None) -> None:
    if length is None:
        draft.missing.append("the length of a draft: whether rounds x length are the proposed tokens")
    else:
        proposed = exact_text(counted.drafts * length)
        draft.equal(f"proposed tokens of rounds of {length}", proposed, exact_text(counted.draft_tokens))
        draft.equal("positions of a draft", length, len(counted.by_position))
    summed = exact_text(sum(counted.by_position, Fraction(0)))
    draft.equal("sum of accepted tokens over positions", exact_text(counted.accepted), summed)
    draft.holds("accepted tokens", ("at least 1", exact_text(counted.accepted)), is_met=counted.accepted >= 1)
    falls = all(later <= earlier for earlier, later in pairwise(counted.by_position))
    shown = ", ".join(map(exact_text, counted.by_position))
    draft.holds("survival over the positions", ("never rises", shown), is_met=falls)
