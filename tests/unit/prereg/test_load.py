"""Reading one campaign file."""

import os
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.errors import InvalidPreregistration
from labctl.prereg.campaign_file import shown_path
from labctl.prereg.load import load_host_profile, load_preregistration, load_suite
from labctl.prereg.model_manifest import load_model_manifest
from labctl.prereg.oracle_file import load_oracle

FIXTURES = Path(__file__).parents[2] / "fixtures" / "prereg"


def test_a_preregistration_comes_with_its_bytes_digest_and_places() -> None:
    path = FIXTURES / "good" / "record.yaml"
    loaded = load_preregistration(path)
    assert loaded.data == path.read_bytes()
    assert loaded.sha256 == sha256_hex(path.read_bytes())
    assert loaded.model.id == "target-ngram"
    assert loaded.campaigns_root == FIXTURES
    assert loaded.places.of_value(("gates", 5, "metric")).endswith("record.yaml:39:43")


def test_the_other_files_are_read_by_their_own_functions() -> None:
    assert load_host_profile(FIXTURES / "hosts" / "bench.yaml").model.remote == "origin"
    assert [prompt.id for prompt in load_suite(FIXTURES / "suites" / "three.yaml").model.prompts] == [
        "p01",
        "p02",
        "p03",
    ]
    assert load_oracle(FIXTURES / "oracles" / "three.json").model.rows[2].finish_reason == "length"
    assert load_model_manifest(FIXTURES / "models" / "target.sha256").model.files[0].path == "config.json"


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidPreregistration) as caught:
        load_suite(FIXTURES / "hosts" / "bench.yaml")
    assert (Code.WRONG_VALUE, 2) in [
        (problem.code, int(problem.where.rsplit(":", 2)[1])) for problem in caught.value.problems
    ]


@pytest.mark.parametrize(
    "load", [load_preregistration, load_host_profile, load_suite, load_oracle, load_model_manifest]
)
def test_what_is_no_file_is_one_line(tmp_path: Path, load: object) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(FIXTURES / "good" / "record.yaml")
    assert callable(load)
    for name in ("absent", "pipe", "link", "."):
        with pytest.raises(InvalidPreregistration) as caught:
            load(tmp_path / name)
        assert caught.value.codes == (Code.BAD_PATH,)


def test_an_oracle_over_the_limit_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    with path.open("wb") as stream:
        stream.truncate((1 << 20) + 1)
    with pytest.raises(InvalidPreregistration) as caught:
        load_suite(path)
    assert caught.value.codes == (Code.TOO_LARGE,)


def test_paths_are_shown_from_where_the_reader_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_path(Path("a/b.yaml")) == "a/b.yaml"
    assert shown_path(tmp_path / "a") == "a"
    assert shown_path(Path("/elsewhere/a")) == "/elsewhere/a"
