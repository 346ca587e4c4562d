"""Model manifests: `sha256sum` lines of every file of a model, read strictly."""

import re
from pathlib import Path

from labctl.codes import Code
from labctl.errors import InvalidPreregistration, Problem
from labctl.frozen import FrozenModel, Sha256
from labctl.prereg.campaign_file import Attempt, Loaded, attempt, read_campaign_file, shown_path
from labctl.prereg.field_types import RelativePath
from labctl.prereg.places import no_places

_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*)")


class ModelFile(FrozenModel):
    """One file of a model."""

    path: RelativePath
    """The path, relative to the model's folder."""
    sha256: Sha256
    """The digest of its bytes."""


class ModelManifest(FrozenModel):
    """Every file of a model."""

    files: tuple[ModelFile, ...]
    """The files, in the order of the manifest."""


def parse_model_manifest(data: bytes, file: str) -> ModelManifest:
    """Read manifest lines: 64 hex digits, two blanks, a relative path, a line feed; each path once.

    Raises:
        InvalidPreregistration: with every line that is wrong.
    """
    problems: list[Problem] = []
    files: dict[str, str] = {}
    text = data.decode("utf-8", "replace")
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        where = f"{file}:{number}:1"
        match = _LINE.fullmatch(line)
        if match is None:
            form = "`<64 hex digits>  <relative path>`"
            problems.append(Problem(Code.MANIFEST_FORM, where, form, repr(line[:80]), "make it with sha256sum"))
        elif match[2] in files:
            problems.append(Problem(Code.DUPLICATE_KEY, where, "each path once", match[2], "keep one of the lines"))
        else:
            files[match[2]] = match[1]
    if not text.endswith("\n"):
        where = f"{file}:{text.count(chr(10)) + 1}:1"
        problems.append(Problem(Code.MANIFEST_FORM, where, "a final line feed", "none", "make it with sha256sum"))
    if problems:
        raise InvalidPreregistration(problems)
    return ModelManifest(files=tuple(ModelFile(path=path, sha256=digest) for path, digest in files.items()))


def try_model_manifest(path: Path) -> Attempt[ModelManifest]:
    """Read a model manifest."""
    file = shown_path(path)
    try:
        data = read_campaign_file(path)
        manifest = parse_model_manifest(data, file)
    except InvalidPreregistration as error:
        return Attempt(None, error.problems)
    return attempt(path, data, (manifest, no_places(file), ()))


def load_model_manifest(path: Path) -> Loaded[ModelManifest]:
    """Read a model manifest.

    Raises:
        InvalidPreregistration: with every line that is wrong.
    """
    return try_model_manifest(path).required()
