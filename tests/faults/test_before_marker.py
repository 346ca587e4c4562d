"""Hosts and repositories that are not fit for a claim are refused before anything is spent."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from labctl.campaign.checks import every_look
from labctl.campaign.look import Look
from labctl.codes import Code
from labctl.engines.catalogue import vocabulary_for
from labctl.errors import PreflightFailed
from tests.fakes.lab_repository import LabRepository
from tests.faults.before_marker import preflight_of, preflight_request


def test_a_file_system_that_the_host_does_not_allow_is_refused(tmp_path: Path) -> None:
    lab = LabRepository.create(tmp_path / "lab")
    lab.edit("campaigns/hosts/any-cpu.yaml", "[ext4, xfs, btrfs, zfs, overlay, tmpfs]", "[zfs]")
    lab.commit("A host with one file system")
    with pytest.raises(PreflightFailed) as caught:
        preflight_of(lab)
    places = {problem.where.rpartition(".")[2] for problem in caught.value.problems}
    assert (set(caught.value.codes), places) == (
        {Code.UNSAFE_ROOT},
        {"authorization", "runs", "analyses", "scratch"},
    )
    assert not (lab.top / ".labctl/authorization/markers").exists()


def test_a_folder_too_deep_for_an_engines_sockets_is_refused(tmp_path: Path) -> None:
    lab = LabRepository.create(tmp_path / "lab")
    deep = preflight_request(lab)
    deep = replace(deep, scratch=deep.scratch / ("d" * 60))
    (met,) = [look for look in every_look(deep) if look.name == "socket_path"]
    assert met.is_met  # the embedded endpoint makes no socket files
    deep.reviewed.folder.engine.chmod(0o600)
    deep.reviewed.folder.engine.write_bytes(vocabulary_for("vllm", "0.32.0").canonical())
    (refused,) = [look for look in every_look(deep) if look.name == "socket_path"]
    assert (refused.is_met, refused.code) == (False, Code.PREFLIGHT)
    short = replace(deep, scratch=Path("/s"))
    assert [look.is_met for look in every_look(short) if look.name == "socket_path"] == [True]


def looks(lab: LabRepository, name: str, **changes: object) -> list[Look]:
    return [look for look in every_look(preflight_request(lab, **changes)) if look.name.startswith(name)]


def test_a_volatile_file_system_serves_exploration_only(tmp_path: Path) -> None:
    lab = LabRepository.create(tmp_path / "lab")
    assert all("tmpfs" in look.expected for look in looks(lab, "file_system."))
    recorded = looks(lab, "file_system.", preregistration={"class": "record"})
    assert len(recorded) == 4
    assert not any("tmpfs" in look.expected or "overlay" in look.expected for look in recorded)


def test_a_commit_that_nobody_else_can_see_is_no_record(tmp_path: Path) -> None:
    lab = LabRepository.create(tmp_path / "lab")
    assert looks(lab, "remote") == []
    record = {"class": "record"}
    (alone,) = looks(lab, "remote", preregistration=record)
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "remote")], check=True)
    lab.git("remote", "add", "origin", str(tmp_path / "remote"))
    (unpushed,) = looks(lab, "remote", preregistration=record)
    lab.git("push", "--quiet", "origin", "main")
    (pushed,) = looks(lab, "remote", preregistration=record)
    lab.commit("One more")
    (ahead,) = looks(lab, "remote", preregistration=record)
    lab.git("push", "--quiet", "origin", "main")
    assert [look.is_met for look in (alone, unpushed, pushed, ahead)] == [False, False, True, False]
    assert alone.code is Code.PREFLIGHT
