"""A whole campaign: the preregistration with every small file that it names, or every problem of all at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from labctl.codes import Code
from labctl.errors import InvalidPreregistration, Problem
from labctl.frozen import FrozenModel
from labctl.prereg.finding import Finding
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.load import (
    Attempt,
    Loaded,
    try_host_profile,
    try_model_manifest,
    try_oracle,
    try_preregistration,
    try_suite,
)
from labctl.prereg.model import Preregistration, TeacherOracle
from labctl.prereg.model_manifest import ModelManifest
from labctl.prereg.places import Places, TreePath
from labctl.prereg.rules.fit import host_fits, oracle_fits, suite_fits
from labctl.prereg.suite import Oracle, Suite

NamedT = TypeVar("NamedT", bound=FrozenModel)


@dataclass(frozen=True, slots=True)
class LoadedCampaign:
    """A preregistration and the files that it names, all found right; paths are below `root`."""

    preregistration: Loaded[Preregistration]
    root: Path
    host: Loaded[HostProfile]
    suite: Loaded[Suite]
    oracle: Loaded[Oracle] | None
    models: dict[str, Loaded[ModelManifest]]
    allowed_signers: Path | None
    noise_record: Path | None


def load_campaign(path: Path, root: Path | None = None) -> LoadedCampaign:
    """Read a preregistration and every file that it names.

    Args:
        path: the campaign file.
        root: the folder that its paths start from; by default the parent of the file's folder.

    Raises:
        InvalidPreregistration: with every problem of all files.
    """
    attempt = try_preregistration(path)
    if attempt.loaded is None:
        raise InvalidPreregistration(attempt.problems)
    files = _Files(attempt.loaded, root or attempt.loaded.campaigns_root, list(attempt.problems))
    campaign = _campaign(files)
    if files.problems or campaign is None:
        raise InvalidPreregistration(_by_file(files.problems))
    return campaign


def _by_file(problems: list[Problem]) -> list[Problem]:
    own = list(dict.fromkeys(problem.where.rsplit(":", 2)[0] for problem in problems))

    def place(problem: Problem) -> tuple[int, int, int]:
        file, line, column = problem.where.rsplit(":", 2)
        return own.index(file), int(line), int(column)

    return sorted(dict.fromkeys(problems), key=place)


@dataclass(slots=True)
class _Files:
    """The files below one root, and the problems met in reading them."""

    preregistration: Loaded[Preregistration]
    root: Path
    problems: list[Problem]

    def read(self, key: TreePath, name: str, reader: Callable[[Path], Attempt[NamedT]]) -> Loaded[NamedT] | None:
        if not self.is_here(key, name):
            return None
        attempt = reader(self.root / name)
        self.problems += attempt.problems
        return None if attempt.problems else attempt.loaded

    def here(self, key: TreePath, name: str | None) -> Path | None:
        return self.root / name if name is not None and self.is_here(key, name) else None

    def is_here(self, key: TreePath, name: str) -> bool:
        where = self.preregistration.places.of_value(key)
        if not (self.root / name).resolve().is_relative_to(self.root.resolve()):
            expected, do = f"a path inside {self.root.name}/", "copy the file into the campaign repository"
            self.problems.append(Problem(Code.BAD_PATH, where, expected, f"{name}, a link that leaves it", do))
            return False
        got = _other_than_file(self.root / name)
        if got is not None:
            expected, do = f"a file below {self.root.name}/", "correct the path, or write the file"
            self.problems.append(Problem(Code.BAD_PATH, where, expected, f"{name}, where there is {got}", do))
        return got is None

    def add(self, findings: Iterator[Finding], places: Places) -> None:
        self.problems += [finding.at(places) for finding in findings]


def _other_than_file(path: Path) -> str | None:
    if path.is_symlink():
        return "a symbolic link"
    if not path.exists():
        return "nothing"
    return None if path.is_file() else "something else"


def _campaign(files: _Files) -> LoadedCampaign | None:
    said = files.preregistration.model
    host = files.read(("host",), said.host, try_host_profile)
    suite = files.read(("workload", "suite"), said.workload.suite, try_suite)
    oracle = None
    if isinstance(said.oracle, TeacherOracle):
        oracle = files.read(("oracle", "teacher"), said.oracle.teacher, try_oracle)
    manifests = {
        model.name: files.read(("models", index, "manifest"), model.manifest, try_model_manifest)
        for index, model in enumerate(said.models)
    }
    signers = files.here(("reviews", "allowed_signers"), said.reviews.allowed_signers)
    noise = files.here(("power", "noise_record"), said.power.noise_record if said.power else None)
    _hold_together(files, host, suite, oracle)
    models = {name: manifest for name, manifest in manifests.items() if manifest is not None}
    if host is None or suite is None:
        return None
    return LoadedCampaign(files.preregistration, files.root, host, suite, oracle, models, signers, noise)


def _hold_together(
    files: _Files, host: Loaded[HostProfile] | None, suite: Loaded[Suite] | None, oracle: Loaded[Oracle] | None
) -> None:
    said, places = files.preregistration.model, files.preregistration.places
    if host is not None:
        files.add(host_fits(said, host.model), places)
    if suite is not None:
        files.add(suite_fits(said, suite.model), places)
    if suite is not None and oracle is not None:
        files.add(oracle_fits(said, suite.model, suite.sha256, oracle.model), places)
