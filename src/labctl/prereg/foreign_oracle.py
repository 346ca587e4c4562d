"""From another lab's token and text files to an oracle: same prompts, told by digest, and nothing made up."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.engines.foreign_lab import TEXT_ORACLE_SCHEMA, TOKEN_ORACLE_SCHEMA
from labctl.errors import InvalidPreregistration, Problem
from labctl.frozen import canonical_json, strict_json
from labctl.prereg.campaign_file import Loaded, read_campaign_file, shown_path
from labctl.prereg.model import Api
from labctl.prereg.oracle_file import MAX_ORACLE_BYTES
from labctl.prereg.rules import oracle_findings
from labctl.prereg.suite import Oracle, Prompt, Suite

SCHEMAS = (TOKEN_ORACLE_SCHEMA, TEXT_ORACLE_SCHEMA)
DO = "name the lab's own files, as it left them, and the suite of the same prompts"
Told = dict[str, object]


@dataclass(frozen=True, slots=True)
class Asked:
    """How the lab asked, which its files do not say."""

    api: Api
    max_tokens: int
    ignore_eos: bool


@dataclass(frozen=True, slots=True)
class _Source:
    where: str
    schema: str
    sha256: str
    source_sha256: str
    rows: tuple[Told, ...]


def import_oracle(files: Sequence[Path], suite: Loaded[Suite], asked: Asked) -> Oracle:
    """An oracle of what the files say, merged row by row; what none of them says stays untold.

    Raises:
        InvalidPreregistration: with everything that is not so: the files' form, their prompts, their one source.
        MalformedRecord: a file is no strict JSON.
    """
    sources = [_read(path) for path in files]
    if problems := list(_problems(sources, suite.model.prompts)):
        raise InvalidPreregistration(problems)
    rows = [_row(prompt, at, sources) for at, prompt in enumerate(suite.model.prompts)]
    document = {
        "labctl": 1,
        "kind": "oracle",
        "suite_sha256": suite.sha256,
        "api": asked.api.value,
        "max_tokens": asked.max_tokens,
        "ignore_eos": asked.ignore_eos,
        "origin": {
            "kind": "imported",
            "files": [{"schema_name": one.schema, "sha256": one.sha256} for one in sources],
            "source_sha256": sources[0].source_sha256,
        },
        "rows": rows,
    }
    oracle = Oracle.from_json(canonical_json(document), "oracle")
    if faults := [
        Problem(Code.RULE, ".".join(map(str, found.path)), found.expected, found.got, DO)
        for found in oracle_findings(oracle)
    ]:
        raise InvalidPreregistration(faults)
    return oracle


def _read(path: Path) -> _Source:
    where = shown_path(path)
    data = read_campaign_file(path, limit_bytes=MAX_ORACLE_BYTES)
    found = strict_json(data, where)
    schema, source = (found.get(name) if isinstance(found, dict) else None for name in ("schema", "source_sha256"))
    rows = found.get("rows") if isinstance(found, dict) else None
    formed = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    if schema not in SCHEMAS or not formed or formed != rows or not isinstance(source, str):
        expected = f"a file of schema {' or '.join(SCHEMAS)} with its source and rows"
        raise InvalidPreregistration(Problem(Code.WRONG_VALUE, where, expected, repr(schema)[:80], DO))
    return _Source(where, str(schema), sha256_hex(data), source, tuple(formed))


def _problems(sources: Sequence[_Source], prompts: Sequence[Prompt]) -> Iterator[Problem]:
    first, *others = sources
    for other in others:
        if other.schema == first.schema:
            yield _problem(other.where, "one file of each kind", f"{other.schema} again")
        if other.source_sha256 != first.source_sha256:
            yield _problem(other.where, f"source {first.source_sha256[:12]}", other.source_sha256[:12])
    for source in sources:
        if len(source.rows) != len(prompts):
            yield _problem(source.where, f"{len(prompts)} rows, the prompts of the suite", f"{len(source.rows)}")
        for at, (row, prompt) in enumerate(zip(source.rows, prompts, strict=False)):
            yield from _row_problems(f"{source.where}: row {at + 1}", row, (at, prompt))


def _row_problems(where: str, row: Mapping[str, object], placed: tuple[int, Prompt]) -> Iterator[Problem]:
    at, prompt = placed
    told = {"prompt_index": at, "prompt_id": prompt.id}
    told |= {"prompt_sha256": _prompt_sha256(prompt)} if "prompt_sha256" in row else {}
    for name, expected in told.items():
        if type(row.get(name)) is not type(expected) or row[name] != expected:
            yield _problem(f"{where}: {name}", str(expected), str(row.get(name))[:80])


def _prompt_sha256(prompt: Prompt) -> str:
    """Of the text, or of the last message: the lab hashed what it had written, not what its client sent."""
    return sha256_hex((prompt.text or (prompt.messages or ())[-1].content).encode("utf-8"))


def _row(prompt: Prompt, at: int, sources: Sequence[_Source]) -> Told:
    row: Told = {"prompt": prompt.id}
    for source in sources:
        if source.schema == TOKEN_ORACLE_SCHEMA:
            row["token_ids"] = source.rows[at].get("token_ids")
        else:
            row["text_sha256"] = source.rows[at].get("sha256")
    return row


def _problem(where: str, expected: str, got: str) -> Problem:
    return Problem(Code.RULE, where, expected, got, DO)
