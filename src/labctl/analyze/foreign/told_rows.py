"""What a comparator of another lab told of each row; its word is repeated and marked as its word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labctl.analyze.foreign.draft import ViewDraft
from labctl.analyze.foreign.folder import StartFolder
from labctl.engines.foreign_lab import EXACTNESS


@dataclass(frozen=True, slots=True)
class ToldRow:
    """One row, as the comparator saw it."""

    prompt: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None
    is_exact: bool
    first_difference: object


def read_told_rows(folder: StartFolder) -> tuple[ToldRow, ...]:
    """The rows of the one comparison that the folder holds, with its figures added to the draft."""
    document = folder.document(EXACTNESS, "exactness against the teacher, and the token counts of the rows")
    if document is None:
        return ()
    candidates = document.get("candidates")
    found = candidates[0] if isinstance(candidates, list) and len(candidates) == 1 else None
    comparison = found.get("comparison") if isinstance(found, dict) else None
    lines = comparison.get("rows") if isinstance(comparison, dict) else None
    rows = [_row(line) for line in lines] if isinstance(lines, list) else []
    if not rows or None in rows or not isinstance(comparison, dict):
        folder.draft.finds(EXACTNESS, "is not one comparison with rows in a form that is known")
        return ()
    known = tuple(row for row in rows if row is not None)
    _tell(folder.draft, known, comparison)
    return known


def _row(line: object) -> ToldRow | None:
    if not isinstance(line, dict):
        return None
    counts = [line.get(name) for name in ("prompt_tokens", "completion_tokens")]
    cached = line.get("cached_tokens")
    prompt_tokens, completion_tokens = (count if type(count) is int else None for count in counts)
    if prompt_tokens is None or completion_tokens is None:
        return None
    return ToldRow(
        prompt=str(line.get("prompt_id")),
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cached_tokens=cached if type(cached) is int else None,
        is_exact=line.get("exact") is True and line.get("token_ids_equal") is True,
        first_difference=line.get("first_diff"),
    )


def _tell(draft: ViewDraft, rows: Sequence[ToldRow], comparison: Mapping[str, object]) -> None:
    exact = sum(row.is_exact for row in rows)
    draft.equal("rows that equal the teacher, by the lab's comparator", f"{len(rows)} of {len(rows)}", _of(exact, rows))
    draft.equal("its own count of them", _of(exact, rows), f"{comparison.get('exact_count')} of {len(rows)}")
    cold = sum(row.cached_tokens == 0 for row in rows)
    draft.equal("rows with 0 cached tokens", f"{len(rows)} of {len(rows)}", _of(cold, rows))
    for row in rows:
        if not row.is_exact:
            draft.finds(EXACTNESS, f"{row.prompt} is not exact: first difference {row.first_difference}")
    for name in ("long_then_next", "rollover"):
        told = comparison.get(name)
        if isinstance(told, dict):
            shown = told.get("passed", f"{told.get('exact_count')} of {told.get('count')} exact")
            draft.facts.append((f"{name}, by the lab's comparator", str(shown)))
        else:
            draft.missing.append(f"{name}: the comparator does not say")


def _of(count: int, rows: Sequence[ToldRow]) -> str:
    return f"{count} of {len(rows)}"
