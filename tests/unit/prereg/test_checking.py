"""Checking files and folders of them."""

import shutil
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.prereg.checking import check_paths

FIXTURES = Path(__file__).parents[2] / "fixtures" / "prereg"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("good", "hosts", "suites", "oracles", "models", "keys", "noise", "workers", "logs"):
        shutil.copytree(FIXTURES / folder, tmp_path / "campaigns" / folder)
    monkeypatch.chdir(tmp_path)
    return Path("campaigns")


def test_a_folder_is_walked_for_every_kind_of_campaign_file(root: Path) -> None:
    paths = [report.path for report in check_paths([root])]
    assert "campaigns/good/record.yaml" in paths
    assert "campaigns/hosts/bench.yaml" in paths
    assert "campaigns/oracles/three.json" in paths
    assert "campaigns/models/target.sha256" in paths
    assert not any(path.startswith("campaigns/keys") for path in paths)


def test_hidden_folders_are_left_alone(root: Path) -> None:
    (root / ".labctl").mkdir()
    (root / ".labctl" / "x.yaml").write_text("a: [")
    assert all(report.is_ok for report in check_paths([root]))


def test_a_fault_is_reported_once_where_it_stands_and_blocks_what_names_it(root: Path) -> None:
    suite = root / "suites" / "three.yaml"
    suite.write_text(suite.read_text().replace("kind: suite\n", "kind: suite\nzzz: 1\n"))
    reports = {report.path: report for report in check_paths([root])}
    assert [problem.code for problem in reports["campaigns/suites/three.yaml"].problems] == [Code.UNKNOWN_KEY]
    assert reports["campaigns/good/record.yaml"].problems == ()
    assert reports["campaigns/good/record.yaml"].blocked_by == ("campaigns/suites/three.yaml",)
    assert not reports["campaigns/good/record.yaml"].is_ok
    assert reports["campaigns/good/chat.yaml"].is_ok


def test_a_campaign_checked_alone_reports_the_fault_of_a_file_that_it_names(root: Path) -> None:
    (root / "suites" / "three.yaml").write_text("kind: suite\n")
    (report,) = check_paths([root / "good" / "record.yaml"])
    assert {problem.where.rsplit(":", 2)[0] for problem in report.problems} == {"campaigns/suites/three.yaml"}


@pytest.mark.parametrize(
    ("name", "code"), [("absent.yaml", Code.BAD_PATH), ("notes.txt", Code.BAD_PATH), ("empty", Code.NOT_FOUND)]
)
def test_what_holds_no_campaign_file_is_a_fault(root: Path, name: str, code: Code) -> None:
    (root / "notes.txt").write_text("x")
    (root / "empty").mkdir()
    (report,) = check_paths([root / name])
    assert [problem.code for problem in report.problems] == [code]


def test_a_file_named_twice_is_checked_once(root: Path) -> None:
    assert len(check_paths([root / "hosts" / "bench.yaml", root / "hosts" / "bench.yaml"])) == 1


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("kind: [a]\n", [Code.WRONG_VALUE]),
        ("kind: NO\n", [Code.AMBIGUOUS_SCALAR]),
        ("kind: nonsense\na: 010\n", [Code.AMBIGUOUS_SCALAR, Code.WRONG_VALUE]),
        ("- kind\n", [Code.WRONG_TYPE]),
        ("a: \x00\n", [Code.NOT_TEXT]),
        ('a: "\\x00"\n', [Code.NOT_TEXT]),
        ("a: &x {b: 1}\nc: {<<: *x}\n", [Code.YAML_FEATURE]),
        ("- &x 1\n- *x\n", [Code.YAML_FEATURE]),
    ],
)
def test_a_file_of_no_kind_says_so(root: Path, text: str, codes: list[Code]) -> None:
    (root / "x.yaml").write_text(text)
    (report,) = check_paths([root / "x.yaml"])
    assert [problem.code for problem in report.problems] == codes


@pytest.mark.parametrize("name", ["nope", "nope/campaign.yaml", "nope.json"])
def test_a_path_that_does_not_exist_is_told_so(root: Path, name: str) -> None:
    (report,) = check_paths([root / name])
    (problem,) = report.problems
    assert (problem.code, problem.got) == (Code.BAD_PATH, "a path that does not exist")


def test_a_misspelt_kind_hides_nothing(root: Path) -> None:
    record = root / "good" / "record.yaml"
    record.write_text(
        record.read_text().replace("kind: endpoint", "kind: endpont").replace("required: 2", "required: 1")
    )
    (report,) = check_paths([record])
    assert [problem.code for problem in report.problems] == [Code.WRONG_VALUE, Code.RULE]


def test_a_file_of_no_kind_says_that_more_follows(root: Path) -> None:
    (root / "x.yaml").write_text("kind: nonsense\n")
    (report,) = check_paths([root / "x.yaml"])
    assert report.problems[-1].do == "correct it; more checks follow once this much is right"
    (root / "x.yaml").write_text("a: &x 1\n")
    (report,) = check_paths([root / "x.yaml"])
    assert report.problems[-1].do.endswith("; more checks follow once this much is right")


def test_a_file_with_the_line_ends_of_another_system_is_one_complaint(root: Path) -> None:
    record = root / "good" / "record.yaml"
    lines = record.read_bytes().count(b"\n")
    record.write_bytes(record.read_bytes().replace(b"\n", b"\r\n"))
    (report,) = check_paths([record])
    assert [problem.got for problem in report.problems] == [f"U+000D in {lines} lines, first here"]
