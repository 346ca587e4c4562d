"""Another lab's token and text files become a teacher only where they are of one source and of the suite's prompts."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.digest import sha256_hex
from labctl.errors import InvalidPreregistration, MalformedRecord
from labctl.prereg.foreign_oracle import Asked, import_oracle
from labctl.prereg.load import load_suite
from labctl.prereg.model import Api
from labctl.prereg.oracle_file import load_oracle
from labctl.prereg.suite import ImportedOrigin, Oracle

ASKED = Asked(Api.COMPLETIONS, 4, ignore_eos=False)
PROMPTS = {"sort": "Sort a list.", "join": "Join two tables."}
Document = dict[str, object]
Spoil = Callable[[Document], object]


def digest(text: str) -> str:
    return sha256_hex(text.encode())


def tokens() -> Document:
    rows = [
        {"prompt_index": at, "prompt_id": name, "prompt_sha256": digest(text), "token_ids": [at + 1, 2, 3, 4]}
        for at, (name, text) in enumerate(PROMPTS.items())
    ]
    return {"schema": "laguna-q1-token-oracle-v1", "source_sha256": "5" * 64, "rows": rows}


def texts() -> Document:
    rows = [{"prompt_index": at, "prompt_id": name, "sha256": digest(name)} for at, name in enumerate(PROMPTS)]
    return {"schema": "laguna-q1-text-sha256-oracle-v1", "source_sha256": "5" * 64, "rows": rows}


def written(folder: Path, *documents: Document) -> list[Path]:
    paths = [folder / f"{number}.json" for number in range(len(documents))]
    for path, document in zip(paths, documents, strict=True):
        path.write_text(json.dumps(document))
    return paths


def suite_file(folder: Path, *, chat: bool = False) -> Path:
    asked = [
        {"id": name, **({"messages": [{"role": "user", "content": text}]} if chat else {"text": text})}
        for name, text in PROMPTS.items()
    ]
    path = folder / "suite.yaml"
    path.write_text(json.dumps({"labctl": 1, "kind": "suite", "id": "two", "prompts": asked}))
    return path


def imported(folder: Path, *documents: Document) -> Oracle:
    return import_oracle(written(folder, *documents), load_suite(suite_file(folder)), ASKED)


def test_tokens_and_texts_of_one_source_are_merged_row_by_row(tmp_path: Path) -> None:
    oracle = imported(tmp_path, tokens(), texts())
    assert [row.token_ids for row in oracle.rows] == [(1, 2, 3, 4), (2, 2, 3, 4)]
    assert [row.text_sha256 for row in oracle.rows] == [*map(digest, PROMPTS)]
    assert isinstance(oracle.origin, ImportedOrigin)
    assert [one.sha256 for one in oracle.origin.files] == [
        sha256_hex(path.read_bytes()) for path in written(tmp_path, tokens(), texts())
    ]
    assert oracle.suite_sha256 == load_suite(suite_file(tmp_path)).sha256


@pytest.mark.parametrize(("make", "untold"), [(tokens, "text_sha256"), (texts, "token_ids")])
def test_what_no_file_says_stays_untold(make: Callable[[], Document], untold: str, tmp_path: Path) -> None:
    oracle = imported(tmp_path, make())
    for name in (untold, "finish_reason", "prompt_token_ids_sha256"):
        assert {getattr(row, name) for row in oracle.rows} == {None}
    (tmp_path / "oracle.json").write_bytes(oracle.canonical())
    assert load_oracle(tmp_path / "oracle.json").model == oracle


def test_a_prompt_of_a_chat_is_known_by_its_last_message(tmp_path: Path) -> None:
    suite = load_suite(suite_file(tmp_path, chat=True))
    assert import_oracle(written(tmp_path, tokens()), suite, Asked(Api.CHAT, 4, ignore_eos=True)).ignore_eos


def first_row(document: Document) -> dict[str, object]:
    rows = document["rows"]
    assert isinstance(rows, list)
    row: dict[str, object] = rows[0]
    return row


SPOILS: list[tuple[Spoil, str]] = [
    (lambda said: said.update(schema="another"), "a file of schema laguna-q1-token-oracle-v1"),
    (lambda said: said.update(rows=[]), "with its source and rows"),
    (lambda said: said.update(source_sha256=None), "with its source and rows"),
    (lambda said: said.update(source_sha256="6" * 64), "source 6"),
    (lambda said: first_row(said).update(prompt_id="join"), "prompt_id: expected sort, got join"),
    (lambda said: first_row(said).update(prompt_index=1), "prompt_index: expected 0, got 1"),
    (lambda said: first_row(said).update(prompt_index=False), "prompt_index: expected 0, got False"),
    (lambda said: first_row(said).update(prompt_sha256=digest("another")), "prompt_sha256: expected"),
    (lambda said: said.update(rows=[first_row(said)]), "2 rows, the prompts of the suite"),
    (lambda said: first_row(said).update(token_ids=[1] * 5), "4 tokens, or fewer"),
    (lambda said: first_row(said).update(token_ids=None), "token ids, or a digest"),
]


@pytest.mark.parametrize(("spoil", "said"), SPOILS)
def test_a_file_of_other_prompts_form_or_source_is_refused(spoil: Spoil, said: str, tmp_path: Path) -> None:
    document = tokens()
    spoil(document)
    others = [texts()] if "source 6" in said else []
    with pytest.raises(InvalidPreregistration, match=said):
        imported(tmp_path, document, *others)


def test_two_files_of_one_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidPreregistration, match="one file of each kind"):
        imported(tmp_path, tokens(), tokens())


def test_tokens_that_are_no_numbers_are_malformed(tmp_path: Path) -> None:
    document = tokens()
    first_row(document)["token_ids"] = ["1"]
    with pytest.raises(MalformedRecord):
        imported(tmp_path, document)


def test_the_command_writes_the_teacher_once(tmp_path: Path) -> None:
    files = [str(path) for path in written(tmp_path, tokens(), texts())]
    words = [sys.executable, "-m", "labctl", "oracle", "import", *files, "--suite", str(suite_file(tmp_path))]
    words += ["--api", "completions", "--max-tokens", "4", "--out", str(tmp_path / "out.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={}, cwd=tmp_path)
    assert "2 rows of another lab: token_ids and text_sha256" in done.stdout
    assert load_oracle(tmp_path / "out.json").model == imported(tmp_path, tokens(), texts())
    again = subprocess.run(words, capture_output=True, text=True, check=False, env={}, cwd=tmp_path)
    assert again.returncode != 0
    assert "EXISTS" in again.stderr
