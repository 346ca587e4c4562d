"""labctl's own identity: the digest of its files, and of the part of them that judges."""

from collections.abc import Mapping
from pathlib import Path

import labctl
from labctl.digest import dirhash, dirhash_of_files, sha256_file
from labctl.packet.model import PinnedAnalyzer, Tool

PACKAGE_FOLDER = Path(labctl.__file__).parent
ANALYZER_NAME = "labctl"
STANDALONE_NAME = "standalone"
STANDALONE_FOLDER = PACKAGE_FOLDER / "standalone"
STANDALONE_FILE = STANDALONE_FOLDER / "analyze_run.py"
# Everything that the analyzer process may load; a test holds this list against what it does load.
ANALYZER_PARTS = (
    "__init__.py",
    "analyze",
    "clock.py",
    "codes.py",
    "digest.py",
    "durable.py",
    "engines",
    "errors.py",
    "frozen.py",
    "packet/__init__.py",
    "packet/contents.py",
    "packet/environment.py",
    "packet/lane.py",
    "packet/model.py",
    "packet/noise_host.py",
    "packet/opening.py",
    "packet/tool.py",
    "power.py",
    "prereg",
    "protocol.py",
    "records",
    "rundir.py",
    "seal",
    "signature.py",
)


def tool_identity() -> Tool:
    """The version of labctl and the `dirHash` of all its files."""
    return Tool(version=labctl.__version__, tree_dirhash=_dirhash_of_parts((".",)))


def analyzer_identity() -> PinnedAnalyzer:
    """The digest of every file that labctl's own analyzer may load."""
    return PinnedAnalyzer(name=ANALYZER_NAME, sha256=_dirhash_of_parts(ANALYZER_PARTS))


def standalone_identity() -> PinnedAnalyzer:
    """The digest of the analyzer that stands alone."""
    digests = {file.name: sha256_file(file)[0] for file in standalone_files()}
    return PinnedAnalyzer(name=STANDALONE_NAME, sha256=standalone_sha256(digests))


def standalone_files() -> tuple[Path, ...]:
    """The files of the analyzer that stands alone: all that it loads, and all that a run keeps a copy of."""
    return tuple(sorted(STANDALONE_FOLDER.glob("[!_.]*.py")))


def standalone_sha256(digests: Mapping[str, str]) -> str:
    """The digest of a standalone analyzer, given those of its files by name; earlier releases had one file."""
    return dirhash(digests) if len(digests) > 1 else "".join(digests.values())


def analyzer_identities() -> tuple[PinnedAnalyzer, ...]:
    """Both analyzers of this release."""
    return (analyzer_identity(), standalone_identity())


def _dirhash_of_parts(parts: tuple[str, ...]) -> str:
    files: set[Path] = set()
    for part in parts:
        path = PACKAGE_FOLDER / part
        files.update(file for file in (path.rglob("*") if path.is_dir() else (path,)) if _is_own(file))
    return dirhash_of_files(PACKAGE_FOLDER, sorted(files))


def _is_own(file: Path) -> bool:
    """Whether a file is part of labctl: code of any kind, and what it reads; not what Python compiles beside it."""
    return file.is_file() and file.parent.name != "__pycache__"
