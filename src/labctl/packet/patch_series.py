"""A source as a base commit plus a patch series: applied in order to an export of the base, it must give the commit."""

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.codes import Code
from labctl.errors import DirtySource, Problem
from labctl.packet.git_command import git_arguments, git_environment
from labctl.packet.git_objects import ObjectReader
from labctl.packet.source import difference, export_snapshot
from labctl.prereg.sources import GitSource

MAX_NAMED = 20
_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch of a series: the name of its file, and its bytes."""

    name: str
    data: bytes


def prove_series(repository: Path, source: GitSource, series: tuple[Patch, ...], scratch: Path) -> None:
    """Apply a series to an export of its base, and hold the result against the tree of the commit that will run.

    Args:
        repository: the source's work tree, which holds both commits.
        source: what the campaign declares; it has a base.
        series: the patches, in order.
        scratch: where the export is made, for as long as it is needed.

    Raises:
        DirtySource: a patch does not apply, or the result is another tree (DIRTY_SOURCE); or see `export_snapshot`.
    """
    with tempfile.TemporaryDirectory(prefix="series-", dir=scratch) as private:
        tree = Path(private) / "base"
        export_snapshot(repository, source.base or "", tree)
        for patch in series:
            _apply(tree, patch, source.git)
        problems = list(_differences(repository, source, tree))
    if problems:
        raise DirtySource(problems[:MAX_NAMED])


def _apply(tree: Path, patch: Patch, name: str) -> None:
    # without the ceiling git would take a repository around the scratch folder for the target, and skip every file
    environment = git_environment() | {"GIT_CEILING_DIRECTORIES": str(tree.resolve().parent)}
    command = [*git_arguments(tree), "apply", "--whitespace=nowarn", "-"]
    answer = subprocess.run(
        command, input=patch.data, capture_output=True, check=False, timeout=_TIMEOUT_S, env=environment
    )
    if answer.returncode != 0:
        lines = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
        do = "write the series again with `git format-patch BASE..COMMIT`"
        where, got = f"source {name}: {patch.name}", repr(lines[-1][:160])
        raise DirtySource(Problem(Code.DIRTY_SOURCE, where, "a patch that applies after those before it", got, do))


def _differences(repository: Path, source: GitSource, tree: Path) -> Iterator[Problem]:
    do = "write the series again, or name the commit that it makes"
    where, expected = f"source {source.git}: patches", f"the tree of {source.commit}"
    left = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_symlink() or not path.is_dir()}
    with ObjectReader(repository) as reader:
        for file in reader.files(source.commit):
            left.discard(file.path)
            if got := difference(tree / file.path, file.mode, reader.read(file.blob, "blob")):
                yield Problem(Code.DIRTY_SOURCE, where, expected, f"{file.path}: {got}", do)
    for path in sorted(left):
        yield Problem(Code.DIRTY_SOURCE, where, expected, f"{path!r}, which that tree does not have", do)
