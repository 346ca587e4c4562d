"""The Python that runs the servers: asked once, in isolation, what it is; its files are read by this process."""

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.codes import Code
from labctl.digest import sha256_file, sha256_hex
from labctl.errors import FreezeRefused, Problem
from labctl.frozen import FrozenModel
from labctl.packet.environment import base_environment
from labctl.packet.model import Interpreter
from labctl.prereg.host_profile import HostProfile

THIS_INTERPRETER = "self"
_HOOKS = ("sitecustomize", "usercustomize")
_TIMEOUT_S = 60
_QUESTION = """
import json, sys
version = ".".join(str(part) for part in sys.version_info[:3])
print(json.dumps({"version": version, "executable": sys.executable, "path": sys.path}))
"""


class InterpreterAnswer(FrozenModel):
    """What an interpreter says about itself."""

    version: str
    """`major.minor.micro`."""
    executable: str
    """`sys.executable`."""
    path: tuple[str, ...]
    """`sys.path` in isolated mode."""


@dataclass(frozen=True, slots=True)
class InterpreterFacts:
    """An interpreter and what is installed in it."""

    path: Path
    answer: InterpreterAnswer
    distributions: tuple[importlib.metadata.Distribution, ...]

    def find(self, name: str) -> importlib.metadata.Distribution | None:
        """The installed distribution of a name, or None."""
        return next((found for found in self.distributions if _normal(found.name) == _normal(name)), None)


def interpreter_path(host: HostProfile, key: str, repository: Path) -> Path:
    """The interpreter that a key of the host profile names; `self` is the one that runs labctl.

    Raises:
        FreezeRefused: the profile has no such key (NOT_FOUND).
    """
    named = host.interpreters.get(key)
    if named is None:
        known = ", ".join(sorted(host.interpreters))
        do = "add it to the host profile, or name another"
        raise FreezeRefused(
            Problem(Code.NOT_FOUND, f"host profile {host.id}: interpreters", f"the key {key}", known, do)
        )
    return Path(sys.executable) if named == THIS_INTERPRETER else repository / named


def ask_interpreter(path: Path) -> InterpreterFacts:
    """Run an interpreter once and list what is installed on its path.

    Raises:
        FreezeRefused: it does not run or does not answer (FILE_DRIFT).
    """
    try:
        answer = subprocess.run(
            [str(path), "-I", "-c", _QUESTION],
            capture_output=True,
            check=True,
            timeout=_TIMEOUT_S,
            env=base_environment(home="/nonexistent", temporary="/nonexistent"),
            cwd="/",
        )
    except (OSError, subprocess.SubprocessError) as error:
        do = "make the environment that the host profile names, or name another interpreter"
        raise FreezeRefused(
            Problem(Code.FILE_DRIFT, str(path), "a Python interpreter", f"{type(error).__name__}", do)
        ) from error
    facts = InterpreterAnswer.from_json(answer.stdout, str(path))
    return InterpreterFacts(path, facts, tuple(_distributions(facts.path)))


def describe_interpreter(facts: InterpreterFacts, key: str) -> Interpreter:
    """What the packet pins of an interpreter."""
    names = sorted({f"{_normal(found.name)}=={found.version}" for found in facts.distributions})
    return Interpreter(
        key=key,
        resolved_sha256=sha256_file(facts.path.resolve())[0],
        version=facts.answer.version,
        distributions_sha256=sha256_hex("".join(f"{name}\n" for name in names).encode()),
        pth_files=tuple(sorted({file.name for file in pth_files(facts)})),
        pth_sha256=_digest_lines(pth_files(facts)),
        startup_sha256=_digest_lines(startup_files(facts)),
        records_sha256=sha256_hex("".join(f"{line}\n" for line in _record_lines(facts)).encode()),
    )


def pth_files(facts: InterpreterFacts) -> tuple[Path, ...]:
    """The `.pth` files on an interpreter's path: lines of code that it runs at every start, isolated or not."""
    return tuple(file for entry in facts.answer.path for file in sorted(Path(entry).glob("*.pth")))


def startup_files(facts: InterpreterFacts) -> tuple[Path, ...]:
    """Every file by which an interpreter can be told what to do at its start, from wherever it is on its path."""
    folders = [Path(entry) for entry in facts.answer.path]
    hooks = [file for folder in folders for name in _HOOKS for file in folder.glob(f"{name}.*") if file.is_file()]
    hooks += [file for folder in folders for name in _HOOKS for file in folder.glob(f"{name}/__init__.*")]
    settings = [folder / "pyvenv.cfg" for folder in Path(facts.answer.executable).parents[:2]]
    return tuple(sorted({*hooks, *(file for file in settings if file.is_file())}))


def record_files(facts: InterpreterFacts) -> tuple[Path, ...]:
    """The RECORD of every installed distribution that has one."""
    found = (_record_file(distribution) for distribution in facts.distributions)
    return tuple(sorted({file for file in found if file is not None}))


def _record_lines(facts: InterpreterFacts) -> list[str]:
    lines = []
    for found in facts.distributions:
        file = _record_file(found)
        digest = "none" if file is None else sha256_file(file)[0]
        lines.append(f"{_normal(found.name)}=={found.version} {digest}")
    return sorted(lines)


def _record_file(found: importlib.metadata.Distribution) -> Path | None:
    """Found by its place, not by what it lists: a list of hundreds of thousands of files need not be parsed for it."""
    if not isinstance(found, importlib.metadata.PathDistribution):
        return None
    file = Path(str(found._path)) / "RECORD"  # noqa: SLF001 (no other name leads to the folder of the metadata)
    return file if file.is_file() else None


def _digest_lines(files: tuple[Path, ...]) -> tuple[str, ...]:
    return tuple(sorted(f"{sha256_file(file)[0]}  {file.name}" for file in files))


def _distributions(path: tuple[str, ...]) -> Iterator[importlib.metadata.Distribution]:
    seen: set[str] = set()
    for found in importlib.metadata.distributions(path=list(path)):
        # a folder without metadata has no name; it cannot be imported by name through a distribution either
        name = _normal(found.metadata["Name"] or "")
        if name and name not in seen:
            seen.add(name)
            yield found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
