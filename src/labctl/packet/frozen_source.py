"""One source of engine code, verified in place by the way that its kind allows."""

from collections.abc import Mapping
from pathlib import Path
from typing import assert_never

from labctl.packet.installed import verify_installed
from labctl.packet.interpreter import InterpreterFacts
from labctl.packet.machine import machine_key
from labctl.packet.model import FrozenGitSource, FrozenSource
from labctl.packet.source import verify_work_tree
from labctl.prereg.sources import GitSource, InstalledSource, Source


def freeze_source(source: Source, places: Mapping[str, str], repository: Path, facts: InterpreterFacts) -> FrozenSource:
    """Verify one source.

    Raises:
        Refused: with everything in it that is not as declared.
    """
    match source:
        case GitSource():
            tree = verify_work_tree(machine_key(places, source.git, repository), source.commit)
            return FrozenGitSource(
                kind="git", name=source.git, commit=tree.commit, tree_dirhash=tree.tree_dirhash, files=tree.files
            )
        case InstalledSource():
            return verify_installed(facts, source)
        case _:
            assert_never(source)


def source_name(source: Source) -> str:
    """What a source is called."""
    return source.git if isinstance(source, GitSource) else source.installed
