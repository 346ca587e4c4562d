"""An analysis names the commit of the analyzer's files, or says that there is none."""

import subprocess
from pathlib import Path

from labctl.packet.own_commit import NOT_TRACKED, read_own_commit


def git(folder: Path, *arguments: str) -> str:
    setting = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    answer = subprocess.run(["git", *setting, *arguments], cwd=folder, capture_output=True, check=True, text=True)
    return answer.stdout.strip()


def tracked_package(folder: Path) -> Path:
    package = folder / "src" / "tool"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    git(folder, "init", "-q")
    git(folder, "add", "src")
    git(folder, "commit", "-q", "-m", "one")
    return package


def test_a_tracked_package_names_its_commit(tmp_path: Path) -> None:
    package = tracked_package(tmp_path)
    found = read_own_commit(package)
    assert (found.commit, found.is_clean) == (git(tmp_path, "rev-parse", "HEAD"), True)


def test_a_changed_or_a_new_file_is_told(tmp_path: Path) -> None:
    package = tracked_package(tmp_path)
    (package / "other.py").write_text("x = 1\n")
    assert not read_own_commit(package).is_clean
    git(tmp_path, "add", "src")
    git(tmp_path, "commit", "-q", "-m", "two")
    assert read_own_commit(package).is_clean
    (package / "other.py").write_text("x = 2\n")
    assert not read_own_commit(package).is_clean


def test_a_package_installed_beside_a_repository_has_no_commit(tmp_path: Path) -> None:
    tracked_package(tmp_path)
    installed = tmp_path / ".venv" / "tool"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert read_own_commit(installed) == NOT_TRACKED


def test_a_package_outside_any_repository_has_no_commit(tmp_path: Path) -> None:
    assert read_own_commit(tmp_path) == NOT_TRACKED
