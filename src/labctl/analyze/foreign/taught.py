"""The client's own texts and tokens held against the lab's teacher, file against file."""

from collections.abc import Mapping
from pathlib import Path

from labctl.analyze.foreign.draft import ViewDraft
from labctl.analyze.foreign.folder import LIMIT_BYTES
from labctl.durable import read_regular
from labctl.engines.foreign_lab import TEXT_ORACLE_SCHEMA, TOKEN_ORACLE_SCHEMA
from labctl.errors import MalformedRecord
from labctl.frozen import strict_json

TEXTS = "output_sha256s"
Told = Mapping[str, object]


def hold_against_teacher(draft: ViewDraft, bench: Told, teacher: Path) -> None:
    """Check what the client kept against a teacher's file; what it did not keep is missing.

    Raises:
        BrokenEvidence: the teacher's file cannot be read.
    """
    rows = _teacher_rows(draft, teacher)
    if rows is None:
        return
    schema, told = rows
    if schema == TEXT_ORACLE_SCHEMA:
        _hold_texts(draft, bench, told, teacher.name)
    elif schema == TOKEN_ORACLE_SCHEMA:
        _hold_tokens(draft, bench, told, teacher.name)
    else:
        draft.finds(teacher.name, f"is a teacher of a schema that is not known: {schema}")


def _teacher_rows(draft: ViewDraft, teacher: Path) -> tuple[object, list[Told]] | None:
    try:
        found = strict_json(read_regular(teacher, limit_bytes=LIMIT_BYTES), teacher.name)
    except MalformedRecord as error:
        draft.finds(teacher.name, error.problems[0].got)
        return None
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        draft.finds(teacher.name, "is no teacher: it has no rows")
        return None
    return found.get("schema"), rows


def _hold_texts(draft: ViewDraft, bench: Told, rows: list[Told], name: str) -> None:
    texts = bench.get(TEXTS)
    if not isinstance(texts, list):
        draft.missing.append(f"{TEXTS}: the client's texts, to be held against {name}")
        return
    equal = sum(row.get("sha256") == text for row, text in zip(rows, texts, strict=False))
    draft.equal(f"texts of the client that are those of {name}", _of(len(rows), rows), _of(equal, rows))
    draft.equal(f"texts of the client, and rows of {name}", len(rows), len(texts))


def _hold_tokens(draft: ViewDraft, bench: Told, rows: list[Told], name: str) -> None:
    lines = bench.get("rows")
    kept = [line for line in lines if isinstance(line, dict) and "token_ids" in line] if isinstance(lines, list) else []
    taught = {row.get("prompt_id"): row.get("token_ids") for row in rows}
    equal = sum(taught.get(line.get("prompt_id")) == line["token_ids"] for line in kept)
    if kept:
        told = f"{len(kept)} of {len(kept)}"
        draft.equal(f"rows of tokens of the client that are those of {name}", told, f"{equal} of {len(kept)}")
    if len(kept) < len(rows):
        draft.missing.append(f"token ids of {len(rows) - len(kept)} of {len(rows)} rows, to be held against {name}")


def _of(count: int, rows: list[Told]) -> str:
    return f"{count} of {len(rows)}"
