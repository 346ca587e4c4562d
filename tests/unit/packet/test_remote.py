from pathlib import Path

import pytest

from labctl.packet.remote import is_on_remote
from tests.fakes.lab_repository import LabRepository


@pytest.fixture
def lab(tmp_path: Path) -> LabRepository:
    """A repository whose first commit is on the remote `origin`."""
    lab = LabRepository.create(tmp_path / "lab")
    lab.git("init", "--quiet", "--bare", str(tmp_path / "origin.git"))
    lab.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    lab.git("push", "--quiet", "origin", "main")
    return lab


def test_a_pushed_commit_and_what_lies_behind_it_are_there(lab: LabRepository) -> None:
    first = lab.head
    lab.write("README.md", "more\n")
    second = lab.commit("More")
    lab.git("push", "--quiet", "origin", "main")
    assert is_on_remote(lab.top, first, "origin")
    assert is_on_remote(lab.top, second, "origin")


def test_a_local_commit_is_not_there_whatever_local_refs_claim(lab: LabRepository) -> None:
    local = lab.commit("Local only")
    lab.git("update-ref", "refs/remotes/origin/main", local)
    assert not is_on_remote(lab.top, local, "origin")
    lab.git("push", "--quiet", "origin", f"{local}:refs/tags/seen")
    assert is_on_remote(lab.top, local, "origin")


def test_a_remote_that_does_not_answer_shows_nothing(lab: LabRepository, tmp_path: Path) -> None:
    (tmp_path / "origin.git").rename(tmp_path / "moved.git")
    assert not is_on_remote(lab.top, lab.head, "origin")
    assert not is_on_remote(lab.top, lab.head, "nowhere")
