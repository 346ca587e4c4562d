"""What runs on the machine, verified in place: sources, models, interpreter, and what the engine calls things."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import FreezeRefused, LabctlError, Problem
from labctl.packet.contents import Ground, Progress, Subject, manifest_role, patch_role
from labctl.packet.engine_vocabulary import resolve_vocabulary
from labctl.packet.frozen_source import freeze_source, source_name
from labctl.packet.interpreter import ask_interpreter, describe_interpreter, interpreter_path
from labctl.packet.machine import machine_key
from labctl.packet.model import FrozenModelFiles, FrozenSource, Interpreter
from labctl.packet.model_files import verify_model
from labctl.packet.patch_series import Patch, prove_series
from labctl.prereg.model import GitSource

FoundT = TypeVar("FoundT")


@dataclass(frozen=True, slots=True)
class FrozenEngine:
    """Everything on the machine that decides a run."""

    sources: tuple[FrozenSource, ...]
    models: tuple[FrozenModelFiles, ...]
    interpreter: Interpreter
    vocabulary: EngineVocabulary


@dataclass(slots=True)
class _Faults:
    """The problems of several independent looks, so that all are reported at once."""

    problems: list[Problem] = field(default_factory=list)

    def of(self, look: Callable[[], FoundT]) -> FoundT | None:
        try:
            return look()
        except LabctlError as error:
            self.problems += error.problems
            return None


def freeze_engine(subject: Subject, ground: Ground, progress: Progress) -> FrozenEngine:
    """Verify everything that runs on the machine.

    Raises:
        FreezeRefused: with every source, model, interpreter or engine that is not as declared.
    """
    said, host, faults = subject.preregistration, subject.host, _Faults()
    progress(f"asking the interpreter `{said.interpreter}` what it is")
    facts = ask_interpreter(interpreter_path(host, said.interpreter, ground.repository))
    vocabulary = faults.of(partial(resolve_vocabulary, said.service.engine, facts))
    sources = []
    for index, source in enumerate(said.sources):
        progress(f"hashing source {source_name(source)}")
        sources.append(faults.of(partial(freeze_source, source, host.sources, ground.repository, facts)))
        faults.of(partial(_prove_series, index, subject, ground, progress))
    models = []
    for model in said.models:
        progress(f"hashing model {model.name}")
        models.append(faults.of(partial(_freeze_model, model.name, subject, ground.repository)))
    if faults.problems or vocabulary is None:
        raise FreezeRefused(faults.problems)
    interpreter = describe_interpreter(facts, said.interpreter)
    return FrozenEngine(tuple(filter(None, sources)), tuple(filter(None, models)), interpreter, vocabulary)


def _prove_series(index: int, subject: Subject, ground: Ground, progress: Progress) -> None:
    source = subject.preregistration.sources[index]
    if not isinstance(source, GitSource) or source.base is None:
        return
    progress(f"applying the patches of source {source.git} to {source.base[:12]}")
    start = patch_role(index, "")
    pinned = (one for one in subject.inputs if one.file.role.startswith(start))
    series = tuple(Patch(one.file.role.removeprefix(start), one.data) for one in pinned)
    repository = machine_key(subject.host.sources, source.git, ground.repository)
    prove_series(repository, source, series, ground.snapshot.parent)


def _freeze_model(name: str, subject: Subject, repository: Path) -> FrozenModelFiles:
    return verify_model(name, machine_key(subject.host.models, name, repository), subject.input(manifest_role(name)))
