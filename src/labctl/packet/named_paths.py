"""Paths that a service is told of: what lies there decides the run, so something in the packet must pin it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from labctl.codes import Code
from labctl.errors import LabctlError, Problem
from labctl.packet.contents import EndpointSubject
from labctl.packet.installed import installed_package
from labctl.packet.interpreter import InterpreterFacts
from labctl.packet.machine import machine_key
from labctl.prereg.arms import PLACEHOLDER
from labctl.prereg.rules.service import templates
from labctl.prereg.sources import GitSource

_BETWEEN = re.compile(r"[\s=:,;\"'{}\[\]()]+")
_OURS = "\0"
_LOOKS_LIKE_FILE = re.compile(r".*[\w-]\.(?:py|so|sh|json|ya?ml|toml|txt|bin|safetensors|gguf|jinja)")
_KERNEL_FOLDERS = ("/dev", "/proc", "/sys")


def unpinned_paths(subject: EndpointSubject, repository: Path, facts: InterpreterFacts) -> Iterator[Problem]:
    """Every file or folder that a command, a variable or a treatment names and that nothing in the packet pins."""
    pinned = [facts.path, *_pinned(subject, repository, facts)]
    for where, text in templates(subject.preregistration):
        for named in _paths_in(text):
            got = _objection(named, pinned, repository)
            if got is not None:
                do = "declare what holds it under `sources` or `models`, and name it by its placeholder"
                place = ".".join(map(str, where))
                yield Problem(Code.BAD_PATH, f"{place}: {named}", "only paths that the packet pins", got, do)


def _paths_in(text: str) -> Iterator[str]:
    """The pieces of a text that may be paths; what a placeholder stands for is pinned or made for the start."""
    pieces = _BETWEEN.split(PLACEHOLDER.sub(_OURS, text))
    for piece in dict.fromkeys((PLACEHOLDER.sub(_OURS, text), *pieces)):
        if _OURS not in piece and ("/" in piece or _LOOKS_LIKE_FILE.fullmatch(piece)):
            yield piece


def _objection(named: str, pinned: list[Path], repository: Path) -> str | None:
    path = Path(named)
    if path.is_absolute():
        found = Path(os.path.normpath(path))
        is_there = (found.is_file() or found.is_dir()) and not str(found).startswith(_KERNEL_FOLDERS)
        is_held = any(found == one or one in found.parents for one in (*pinned, *(one.resolve() for one in pinned)))
        return "one that is there, and pinned by nothing" if is_there and not is_held else None
    if (repository / path).is_file():
        return "a file of the repository, where the server never looks: it starts in an empty folder"
    return None


def _pinned(subject: EndpointSubject, repository: Path, facts: InterpreterFacts) -> Iterator[Path]:
    host = subject.host
    for source in subject.preregistration.sources:
        try:
            if isinstance(source, GitSource):
                yield machine_key(host.sources, source.git, repository)
            else:
                yield from installed_package(facts, source).listed
        except LabctlError:
            continue  # freezing tells of it
    for model in subject.preregistration.models:
        if model.name in host.models:
            yield machine_key(host.models, model.name, repository)
