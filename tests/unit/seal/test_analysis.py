import subprocess
from pathlib import Path

import bagit
import pytest
from pydantic import JsonValue

from labctl.codes import Code
from labctl.errors import BrokenEvidence, ManifestMismatch, Refused, SealInvalid
from labctl.frozen import canonical_json, strict_json
from labctl.seal.analysis import open_analysis, seal_analysis
from tests.fakes.sealed_run import spoil

SUBJECT = ("quick-test-0123456789ab-00112233445566778899aabbccddeeff", "c" * 64)
FACTS: dict[str, JsonValue] = {"analyzer_sha256": "d" * 64, "gates": [{"id": "pair", "passed": True}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "quick-labctl-1"
    (path / "data").mkdir(parents=True)
    (path / "data" / "verdict.json").write_bytes(b"{}\n")
    (path / "data" / "report.md").write_bytes(b"# Verdict\n")
    return path


def test_a_sealed_analysis_names_its_run_and_its_facts(folder: Path) -> None:
    digest = seal_analysis(folder, SUBJECT, FACTS)
    opened = open_analysis(folder)
    assert (opened.run_dir, opened.run_seal_sha256, opened.seal_sha256) == (*SUBJECT, digest)
    assert opened.statement.predicate.facts == FACTS
    assert opened.names() == ("report.md", "verdict.json")
    assert opened.read("verdict.json") == b"{}\n"


def test_other_tools_agree(folder: Path) -> None:
    seal_analysis(folder, SUBJECT, FACTS)
    subprocess.run(["sha256sum", "-c", "--strict", "--quiet", "manifest-sha256.txt"], cwd=folder, check=True)
    assert bagit.Bag(str(folder)).is_valid()


def test_one_changed_bit_is_found_and_the_file_is_named(folder: Path) -> None:
    seal_analysis(folder, SUBJECT, FACTS)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        before = path.read_bytes()
        changed = bytearray(before)
        changed[len(changed) // 2] ^= 1
        spoil(path, bytes(changed))
        with pytest.raises(BrokenEvidence) as caught:
            open_analysis(folder)
        name = path.relative_to(folder).as_posix()
        assert {problem.where.split(":")[0] for problem in caught.value.problems} == {name}
        spoil(path, before)


def test_an_analysis_is_sealed_once(folder: Path) -> None:
    seal_analysis(folder, SUBJECT, FACTS)
    with pytest.raises((Refused, BrokenEvidence)):
        seal_analysis(folder, SUBJECT, FACTS)


def test_what_cannot_be_sealed_is_refused(folder: Path) -> None:
    (folder / "data" / "link").symlink_to("verdict.json")
    (folder / "data" / "empty").mkdir()
    (folder / "stray").write_bytes(b"")
    with pytest.raises(BrokenEvidence) as caught:
        seal_analysis(folder, SUBJECT, FACTS)
    assert sorted(caught.value.codes) == [Code.EXTRA_FILE, Code.EXTRA_FILE, Code.FORBIDDEN_FILE]
    assert not (folder / "seal.json").exists()


def test_an_unsealed_analysis_is_not_opened(folder: Path) -> None:
    with pytest.raises(SealInvalid) as caught:
        open_analysis(folder)
    assert set(caught.value.codes) == {Code.UNSEALED}


def test_an_added_file_is_named(folder: Path) -> None:
    seal_analysis(folder, SUBJECT, FACTS)
    (folder / "data" / "more.json").write_bytes(b"")
    with pytest.raises(ManifestMismatch) as caught:
        open_analysis(folder)
    assert [(p.code, p.where) for p in caught.value.problems] == [(Code.EXTRA_FILE, "data/more.json")]


def test_a_renamed_analysis_is_foreign_to_its_seal(folder: Path) -> None:
    seal_analysis(folder, SUBJECT, FACTS)
    with pytest.raises(SealInvalid) as caught:
        open_analysis(folder.rename(folder.with_name("other")))
    assert caught.value.codes == (Code.SEAL_FOREIGN,)


def test_a_statement_of_another_kind_is_refused(folder: Path) -> None:
    seal_analysis(folder, SUBJECT, FACTS)
    seal = strict_json((folder / "seal.json").read_bytes(), "seal")
    spoil(folder / "seal.json", canonical_json(seal | {"predicateType": "https://labctl.dev/run-seal/v1"}))
    with pytest.raises(SealInvalid) as caught:
        open_analysis(folder)
    assert caught.value.codes == (Code.SEAL_FORM,)
