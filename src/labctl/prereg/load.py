"""Step 1, preregister: from the bytes of one campaign file to a verified model, or to every problem of the file."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import read_regular
from labctl.errors import BrokenEvidence, InvalidPreregistration, MalformedRecord, Problem
from labctl.frozen import FrozenModel, strict_json
from labctl.prereg.finding import Finding
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.model import Preregistration
from labctl.prereg.model_manifest import ModelManifest, parse_model_manifest
from labctl.prereg.places import Places, no_places
from labctl.prereg.rules import host_findings, oracle_findings, preregistration_findings, suite_findings
from labctl.prereg.source_text import MAX_FILE_BYTES
from labctl.prereg.strict_yaml import YamlDocument, read_yaml
from labctl.prereg.suite import Oracle, Suite
from labctl.prereg.validation import validate

MAX_ORACLE_BYTES = 64 << 20
FileT = TypeVar("FileT", bound=FrozenModel)


@dataclass(frozen=True, slots=True)
class Loaded(Generic[FileT]):
    """A campaign file that was read and found right, with its exact bytes."""

    model: FileT
    path: Path
    data: bytes
    sha256: str
    places: Places

    @property
    def campaigns_root(self) -> Path:
        """The folder that the paths in a preregistration start from: the parent of the file's folder."""
        return self.path.absolute().parent.parent


class Attempt(NamedTuple, Generic[FileT]):
    """A file that was read, and every problem found in it; with problems, `loaded` may be a guess at what was meant."""

    loaded: Loaded[FileT] | None
    problems: tuple[Problem, ...]

    def required(self) -> Loaded[FileT]:
        """The file, if nothing is wrong with it.

        Raises:
            InvalidPreregistration: with every problem.
        """
        if self.problems or self.loaded is None:
            raise InvalidPreregistration(self.problems)
        return self.loaded


def try_preregistration(path: Path) -> Attempt[Preregistration]:
    """Read a campaign file of kind `endpoint` and hold it against the rules that need no other file."""
    return _try_yaml(path, Preregistration, preregistration_findings)


def try_host_profile(path: Path) -> Attempt[HostProfile]:
    """Read a host profile."""
    return _try_yaml(path, HostProfile, host_findings)


def try_suite(path: Path) -> Attempt[Suite]:
    """Read a suite of prompts."""
    return _try_yaml(path, Suite, suite_findings)


def try_oracle(path: Path) -> Attempt[Oracle]:
    """Read an oracle, strict JSON."""
    file = shown_path(path)
    try:
        data = read_campaign_file(path, limit_bytes=MAX_ORACLE_BYTES)
        tree = strict_json(data, f"{file}:1:1")
    except (InvalidPreregistration, MalformedRecord) as error:
        return Attempt(None, error.problems)
    document = YamlDocument(tree, no_places(file), (), frozenset())
    return _attempt(path, data, document, (Oracle, oracle_findings))


def try_model_manifest(path: Path) -> Attempt[ModelManifest]:
    """Read a model manifest."""
    file = shown_path(path)
    try:
        data = read_campaign_file(path)
        manifest = parse_model_manifest(data, file)
    except InvalidPreregistration as error:
        return Attempt(None, error.problems)
    return Attempt(Loaded(manifest, path, data, sha256_hex(data), no_places(file)), ())


def load_preregistration(path: Path) -> Loaded[Preregistration]:
    """Read a campaign file of kind `endpoint` and hold it against the rules that need no other file.

    Raises:
        InvalidPreregistration: with every problem of the file.
    """
    return try_preregistration(path).required()


def load_host_profile(path: Path) -> Loaded[HostProfile]:
    """Read a host profile.

    Raises:
        InvalidPreregistration: with every problem of the file.
    """
    return try_host_profile(path).required()


def load_suite(path: Path) -> Loaded[Suite]:
    """Read a suite of prompts.

    Raises:
        InvalidPreregistration: with every problem of the file.
    """
    return try_suite(path).required()


def load_oracle(path: Path) -> Loaded[Oracle]:
    """Read an oracle, strict JSON.

    Raises:
        InvalidPreregistration: with every problem of the file.
    """
    return try_oracle(path).required()


def load_model_manifest(path: Path) -> Loaded[ModelManifest]:
    """Read a model manifest.

    Raises:
        InvalidPreregistration: with every line that is wrong.
    """
    return try_model_manifest(path).required()


def read_campaign_file(path: Path, *, limit_bytes: int = MAX_FILE_BYTES) -> bytes:
    """The bytes of a campaign file.

    Raises:
        InvalidPreregistration: absent, not a regular file (BAD_PATH), or too large.
    """
    try:
        return read_regular(path, limit_bytes=limit_bytes)
    except BrokenEvidence as error:
        raise InvalidPreregistration(
            Problem(
                Code.TOO_LARGE if problem.code is Code.TOO_LARGE else Code.BAD_PATH,
                f"{shown_path(path)}:1:1",
                problem.expected,
                problem.got,
                "shorten the file" if problem.code is Code.TOO_LARGE else "name a file that can be read",
            )
            for problem in error.problems
        ) from error


def shown_path(path: Path) -> str:
    """A path as messages show it: relative to the working folder where it lies below."""
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def _try_yaml(path: Path, kind: type[FileT], rules: Callable[[FileT], Iterable[Finding]]) -> Attempt[FileT]:
    try:
        data = read_campaign_file(path)
    except InvalidPreregistration as error:
        return Attempt(None, error.problems)
    return _attempt(path, data, read_yaml(data, shown_path(path)), (kind, rules))


def _attempt(
    path: Path,
    data: bytes,
    document: YamlDocument,
    grammar: tuple[type[FileT], Callable[[FileT], Iterable[Finding]]],
) -> Attempt[FileT]:
    model, places, problems = validate(document, *grammar)
    loaded = None if model is None else Loaded(model, path, data, sha256_hex(data), places)
    return Attempt(loaded, problems)
