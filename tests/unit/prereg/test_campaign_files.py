"""A preregistration with the files that it names."""

import shutil
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import InvalidPreregistration
from labctl.prereg.campaign_files import load_campaign

FIXTURES = Path(__file__).parents[2] / "fixtures" / "prereg"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("good", "hosts", "suites", "oracles", "models", "keys", "noise"):
        shutil.copytree(FIXTURES / folder, tmp_path / "campaigns" / folder)
    return tmp_path / "campaigns"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def faults(path: Path, root: Path | None = None) -> list[tuple[Code, str]]:
    with pytest.raises(InvalidPreregistration) as caught:
        load_campaign(path, root)
    return [(problem.code, Path(problem.where.rsplit(":", 2)[0]).name) for problem in caught.value.problems]


def test_a_campaign_comes_with_every_file_that_it_names(root: Path) -> None:
    campaign = load_campaign(root / "good" / "record.yaml")
    assert campaign.root == root
    assert campaign.host.path == root / "hosts" / "bench.yaml"
    assert len(campaign.suite.model.prompts) == 3
    assert campaign.oracle is not None
    assert list(campaign.models) == ["target"]
    assert campaign.allowed_signers == root / "keys" / "allowed_signers"
    assert campaign.noise_record is not None
    assert campaign.noise_record.path == root / "noise" / "bench.json"


def test_a_campaign_without_a_teacher_has_no_oracle(root: Path) -> None:
    campaign = load_campaign(root / "good" / "chat.yaml")
    assert campaign.oracle is None
    assert campaign.allowed_signers is None
    assert campaign.noise_record is None


def test_a_folder_in_place_of_a_campaign_file_is_told_which_file_to_name(root: Path) -> None:
    with pytest.raises(InvalidPreregistration, match=r"name a file in it, such as .*/good/campaign\.yaml"):
        load_campaign(root / "good")


def test_a_campaign_file_beside_the_files_that_it_names_is_told_to_have_a_folder(root: Path) -> None:
    shutil.copy(root / "good" / "record.yaml", root / "record.yaml")
    with pytest.raises(InvalidPreregistration) as caught:
        load_campaign(root / "record.yaml")
    told = [problem for problem in caught.value.problems if problem.code is Code.BAD_PATH]
    assert told
    assert all(problem.do.startswith("give the campaign file a folder of its own") for problem in told)


def test_paths_can_start_from_another_root(root: Path, tmp_path: Path) -> None:
    alone = tmp_path / "elsewhere" / "deep" / "campaign.yaml"
    alone.parent.mkdir(parents=True)
    shutil.copy(root / "good" / "record.yaml", alone)
    assert load_campaign(alone, root).suite.path == root / "suites" / "three.yaml"
    assert {code for code, _ in faults(alone)} == {Code.BAD_PATH}


def test_every_fault_of_every_file_is_reported_at_once_its_own_first(root: Path) -> None:
    campaign = root / "good" / "record.yaml"
    edit(campaign, "required: 2", "required: 1")
    edit(campaign, "keys/allowed_signers", "keys/nobody")
    edit(root / "hosts" / "bench.yaml", "address: 127.0.0.1", "adress: 127.0.0.1")
    edit(root / "suites" / "three.yaml", "id: p02", "id: p01")
    edit(root / "oracles" / "three.json", '"labctl": 1', '"labctl": NaN')
    (root / "models" / "target.sha256").write_text("nonsense\n")
    assert faults(campaign) == [
        (Code.RULE, "record.yaml"),
        (Code.BAD_PATH, "record.yaml"),
        (Code.UNKNOWN_KEY, "bench.yaml"),
        (Code.RULE, "three.yaml"),
        (Code.BAD_JSON, "three.json"),
        (Code.MANIFEST_FORM, "target.sha256"),
    ]


def test_a_link_that_leaves_the_folder_is_refused(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "three.yaml"
    shutil.move(root / "suites" / "three.yaml", outside)
    (root / "suites" / "three.yaml").symlink_to(outside)
    assert faults(root / "good" / "record.yaml") == [(Code.BAD_PATH, "record.yaml")]


def test_a_link_inside_the_folder_is_refused_as_well(root: Path) -> None:
    (root / "suites" / "three.yaml").rename(root / "suites" / "real.yaml")
    (root / "suites" / "three.yaml").symlink_to("real.yaml")
    assert faults(root / "good" / "record.yaml") == [(Code.BAD_PATH, "record.yaml")]


def test_a_file_that_does_not_read_as_a_campaign_ends_there(root: Path) -> None:
    (root / "good" / "record.yaml").write_text("labctl: [\n")
    assert faults(root / "good" / "record.yaml") == [(Code.YAML_SYNTAX, "record.yaml")]


def test_a_file_with_a_plain_fault_is_still_held_against_what_names_it(root: Path) -> None:
    edit(root / "suites" / "three.yaml", "kind: suite\n", "kind: suite\nzzz: 1\n")
    edit(root / "good" / "record.yaml", "requests_per_start: 3", "requests_per_start: 12")
    assert faults(root / "good" / "record.yaml") == [(Code.UNKNOWN_KEY, "three.yaml"), (Code.RULE, "record.yaml")]


def test_quoting_and_spelling_hide_neither_rules_nor_files(root: Path) -> None:
    record = root / "good" / "record.yaml"
    edit(record, "max_tokens: 128", 'max_tokens: "128"')
    edit(record, "treatment:\n", "treatmnt:\n")
    edit(record, "requests_per_start: 3", "requests_per_start: 12")
    edit(record, "oracles/three.json", "oracles/four.json")
    assert sorted(faults(record)) == sorted(
        [
            (Code.UNKNOWN_KEY, "record.yaml"),
            (Code.WRONG_TYPE, "record.yaml"),
            (Code.BAD_PATH, "record.yaml"),
            (Code.RULE, "record.yaml"),
        ]
    )


def test_a_quoted_number_and_a_treatment_that_is_missing_and_a_suite_that_is_not_there(root: Path) -> None:
    record = root / "good" / "exploratory.yaml"
    text = record.read_text()
    start, end = text.index("treatment:"), text.index("workload:")
    record.write_text(text[:start] + text[end:].replace("max_tokens: 128", 'max_tokens: "128"'))
    edit(record, "suites/three.yaml", "suites/none.yaml")
    with pytest.raises(InvalidPreregistration) as caught:
        load_campaign(record)
    assert sorted(caught.value.codes) == sorted([Code.WRONG_TYPE, Code.RULE, Code.BAD_PATH])
    noted = [problem.code for problem in caught.value.problems if "more checks follow" in problem.do]
    assert noted == [Code.BAD_PATH]


def test_a_campaign_lists_every_file_of_it(root: Path) -> None:
    names = [path.relative_to(root).as_posix() for path in load_campaign(root / "good" / "record.yaml").paths()]
    assert names == [
        "good/record.yaml",
        "hosts/bench.yaml",
        "suites/three.yaml",
        "oracles/three.json",
        "models/target.sha256",
        "keys/allowed_signers",
        "noise/bench.json",
    ]
