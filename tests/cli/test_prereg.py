"""`labctl prereg` as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]
BAD = TOP / "tests" / "fixtures" / "prereg" / "bad"
HEAVY = ("torch", "httpx", "scipy", "numpy", "matplotlib", "jinja2", "orjson", "psutil", "prometheus_client", "rich")


def labctl(*arguments: str, folder: Path = TOP) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "labctl.cli.main", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_shipped_campaigns_validate() -> None:
    done = labctl("prereg", "validate", "campaigns/")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(line.endswith(": ok") for line in done.stdout.splitlines())
    assert "campaigns/quickstart/campaign.yaml: ok" in done.stdout


def test_a_folder_of_bad_files_yields_one_coded_complaint_each() -> None:
    done = labctl("prereg", "validate", str(BAD))
    files = [path for path in BAD.rglob("*") if "__" in path.name]
    lines = done.stdout.splitlines()
    assert done.returncode == 3
    assert len(lines) == len(files)
    for file in files:
        code, line = file.stem.split("__")[1:]
        (complaint,) = [text for text in lines if f"/{file.name}:" in text]
        assert f"{file.name}:{line[1:]}:" in complaint
        assert complaint.endswith(f"[{code}]")


def test_json_tells_a_machine_the_same() -> None:
    done = labctl("prereg", "validate", "--format", "json", str(BAD / "046-misspelt-key__UNKNOWN_KEY__L28.yaml"))
    (report,) = json.loads(done.stdout)
    assert done.returncode == 3
    assert report["ok"] is False
    (problem,) = report["problems"]
    assert (problem["code"], problem["line"], problem["column"]) == ("UNKNOWN_KEY", 28, 1)
    assert problem["do"] == "did you mean `schedule`?"


def test_github_gets_annotations() -> None:
    done = labctl(
        "prereg", "validate", "--format", "github", str(BAD / "027-duplicate-flow-key__DUPLICATE_KEY__L27.yaml")
    )
    assert done.returncode == 3
    assert done.stdout.startswith("::error file=tests/fixtures/prereg/bad/027-")
    assert ",line=27,col=80,title=DUPLICATE_KEY::expected each key once" in done.stdout


def test_a_campaign_that_names_a_wrong_file_is_not_ok_and_says_which(tmp_path: Path) -> None:
    labctl("prereg", "new", "campaigns/mine", folder=tmp_path)
    (tmp_path / "campaigns" / "suites" / "first-prompts.yaml").write_text(
        "labctl: 1\nkind: suite\nid: a\nprompts: []\n"
    )
    text = labctl("prereg", "validate", "campaigns", folder=tmp_path)
    github = labctl("prereg", "validate", "campaigns", "--format", "github", folder=tmp_path)
    assert text.returncode == github.returncode == 3
    assert "campaigns/mine/campaign.yaml: not ok, see campaigns/suites/first-prompts.yaml" in text.stdout
    assert "::error file=campaigns/mine/campaign.yaml,line=1,col=1::not ok" in github.stdout


def test_nothing_to_check_is_never_a_pass(tmp_path: Path) -> None:
    assert labctl("prereg", "validate").returncode == 2
    empty = labctl("prereg", "validate", str(tmp_path))
    absent = labctl("prereg", "validate", str(tmp_path / "absent.yaml"))
    assert (empty.returncode, absent.returncode) == (3, 3)
    assert len(empty.stdout.splitlines()) == len(absent.stdout.splitlines()) == 1


def test_an_unknown_format_is_a_usage_error() -> None:
    assert labctl("prereg", "validate", "--format", "xml", "campaigns").returncode == 2


def test_a_new_campaign_validates_and_is_not_overwritten(tmp_path: Path) -> None:
    made = labctl("prereg", "new", "campaigns/my-idea", folder=tmp_path)
    assert (made.returncode, len(made.stdout.splitlines())) == (0, 3)
    assert labctl("prereg", "validate", "campaigns", folder=tmp_path).returncode == 0
    again = labctl("prereg", "new", "campaigns/my-idea", folder=tmp_path)
    assert again.returncode == 3
    assert again.stderr.endswith("[EXISTS]\n")
    assert len(again.stderr.splitlines()) == 1


def test_a_new_campaign_outside_git_is_told_that_freezing_needs_a_repository(tmp_path: Path) -> None:
    outside = labctl("prereg", "new", "campaigns/one", folder=tmp_path)
    assert outside.returncode == 0
    assert outside.stderr.splitlines() == [
        "campaigns/one is in no git repository: `git init` makes one; freezing takes only what is committed"
    ]
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    assert labctl("prereg", "new", "campaigns/two", folder=tmp_path).stderr == ""


def test_a_path_that_does_not_exist_is_one_line_that_says_so() -> None:
    done = labctl("prereg", "validate", "campaigns/nope")
    assert done.returncode == 3
    assert done.stdout == (
        "campaigns/nope:1:1: expected a campaign file or a folder of them, got a path that does not exist; "
        "correct the path [BAD_PATH]\n"
    )


def test_a_host_profile_in_place_of_a_campaign_is_one_line() -> None:
    done = labctl("plan", "campaigns/hosts/any-cpu.yaml")
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "expected a campaign (kind `endpoint`), got a host profile (kind `host`)" in line


def test_the_schemas_are_current_and_can_be_written(tmp_path: Path) -> None:
    assert labctl("prereg", "schema", "--check").returncode == 0
    assert labctl("prereg", "schema", "--check", folder=tmp_path).returncode == 3
    assert labctl("prereg", "schema", "--write", folder=tmp_path).returncode == 0
    assert labctl("prereg", "schema", "--check", folder=tmp_path).returncode == 0
    assert labctl("prereg", "schema").returncode == 2
    assert labctl("prereg", "schema", "--write", "--check").returncode == 2


def test_a_name_cannot_reach_the_terminal_as_an_escape_sequence(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[31m.yaml").write_text("x: [")
    done = labctl("prereg", "validate", str(tmp_path))
    assert done.returncode == 3
    assert "\x1b" not in done.stdout
    assert "a\\x1b[31m.yaml" in done.stdout


def test_validating_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "sys.argv = ['labctl', 'prereg', 'validate', 'campaigns/quickstart/campaign.yaml']\n"
        "from labctl.cli.main import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=TOP, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["campaigns/quickstart/campaign.yaml: ok", "[]"]
