"""Checks campaign files and folders of them: what each file is, and everything that is wrong with it."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from labctl.codes import Code
from labctl.errors import InvalidPreregistration, Problem
from labctl.prereg.campaign_file import shown_path
from labctl.prereg.card_files import load_any_campaign
from labctl.prereg.kinds import kind_of
from labctl.prereg.load import load_host_profile, load_suite
from labctl.prereg.model_manifest import load_model_manifest
from labctl.prereg.noise_file import load_noise_record
from labctl.prereg.oracle_file import load_oracle

_YAML = frozenset({".yaml", ".yml"})
_NOISE = "noise"
_BY_FOLDER = {"oracles": ".json", _NOISE: ".json", "models": ".sha256"}


class FileReport(NamedTuple):
    """What was found in one file; `blocked_by` are files that it names and that are themselves wrong."""

    path: str
    problems: tuple[Problem, ...]
    blocked_by: tuple[str, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether nothing is wrong with the file or with what it names."""
        return not self.problems and not self.blocked_by


def check_paths(paths: Sequence[Path]) -> list[FileReport]:
    """A report for each campaign file among the paths and below the folders; a path that holds none is a problem."""
    found = {path: list(_campaign_files(path)) for path in paths}
    files = list(dict.fromkeys(file for listed in found.values() for file in listed))
    reports = [_own_problems(_check_file(file), files) for file in files]
    return reports + [_nothing_in(path) for path, listed in found.items() if not listed]


def _campaign_files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            suffix = Path(name).suffix
            if suffix in _YAML or suffix == _BY_FOLDER.get(Path(folder).absolute().name):
                yield Path(folder) / name


def _nothing_in(path: Path) -> FileReport:
    where = f"{shown_path(path)}:1:1"
    got = "a folder without any" if os.access(path, os.R_OK) else "a folder that cannot be read"
    return FileReport(
        shown_path(path), (Problem(Code.NOT_FOUND, where, "campaign files", got, "name a folder that holds some"),)
    )


def _own_problems(report: FileReport, files: Sequence[Path]) -> FileReport:
    checked = {shown_path(file) for file in files} - {report.path}
    own = tuple(problem for problem in report.problems if _file_of(problem) not in checked)
    others = dict.fromkeys(_file_of(problem) for problem in report.problems if _file_of(problem) in checked)
    return FileReport(report.path, own, tuple(others))


def _file_of(problem: Problem) -> str:
    return problem.where.rsplit(":", 2)[0]


def _check_file(path: Path) -> FileReport:
    try:
        _load(path)
    except InvalidPreregistration as error:
        return FileReport(shown_path(path), error.problems)
    return FileReport(shown_path(path), ())


def _load(path: Path) -> object:
    if not os.path.lexists(path):
        where, got = f"{shown_path(path)}:1:1", "a path that does not exist"
        raise InvalidPreregistration(
            Problem(Code.BAD_PATH, where, "a campaign file or a folder of them", got, "correct the path")
        )
    match path.suffix:
        case ".json" if path.absolute().parent.name == _NOISE:
            return load_noise_record(path)
        case ".json":
            return load_oracle(path)
        case ".sha256":
            return load_model_manifest(path)
        case ".yaml" | ".yml":
            return _load_yaml(path)
        case _:
            expected, do = "a .yaml, .yml, .json or .sha256 file", "name a campaign file"
            got = path.suffix or "no suffix"
            raise InvalidPreregistration(Problem(Code.BAD_PATH, f"{shown_path(path)}:1:1", expected, got, do))


def _load_yaml(path: Path) -> object:
    match kind_of(path):
        case "suite":
            return load_suite(path)
        case "host":
            return load_host_profile(path)
        case _:
            return load_any_campaign(path)
