"""What runs on the machine, verified in place: sources, models, interpreter, and what the engine calls things."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from labctl.codes import Code
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import FreezeRefused, LabctlError, Problem
from labctl.packet.contents import EndpointSubject, Ground, Progress, Subject, binaries_role, manifest_role, patch_role
from labctl.packet.engine_vocabulary import resolve_vocabulary
from labctl.packet.frozen_source import freeze_source, source_name
from labctl.packet.interpreter import InterpreterFacts, ask_interpreter, describe_interpreter, interpreter_path
from labctl.packet.machine import machine_key
from labctl.packet.model import FrozenModelFiles, FrozenSource, Interpreter
from labctl.packet.model_files import verify_model
from labctl.packet.named_paths import unpinned_paths
from labctl.packet.patch_series import Patch, prove_series
from labctl.prereg.model import Preregistration
from labctl.prereg.sources import GitSource
from labctl.prereg.treatment_kinds import BinariesTreatment

FoundT = TypeVar("FoundT")


@dataclass(frozen=True, slots=True)
class FrozenEngine:
    """Everything on the machine that decides a run."""

    sources: tuple[FrozenSource, ...]
    models: tuple[FrozenModelFiles, ...]
    interpreter: Interpreter
    vocabulary: EngineVocabulary | None
    """None: the campaign starts no server."""
    binaries: tuple[FrozenModelFiles, ...] = ()

    @property
    def engine_json(self) -> bytes | None:
        """The bytes of `engine.json`, where there is one."""
        return None if self.vocabulary is None else self.vocabulary.canonical()


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


def freeze_engine(subject: EndpointSubject, ground: Ground, progress: Progress) -> FrozenEngine:
    """Verify everything that runs on the machine.

    Raises:
        FreezeRefused: with every source, model, interpreter or engine that is not as declared.
    """
    said, faults = subject.preregistration, _Faults()
    progress(f"asking the interpreter `{said.interpreter}` what it is")
    facts = ask_interpreter(interpreter_path(subject.host, said.interpreter, ground.repository))
    vocabulary = faults.of(partial(resolve_vocabulary, said.service.engine, facts))
    sources = _freeze_sources((subject, ground), facts, faults, progress)
    models = []
    for model in said.models:
        progress(f"hashing model {model.name}")
        models.append(faults.of(partial(_freeze_model, model.name, subject, ground.repository)))
    binaries = [faults.of(partial(_freeze_binaries, key, subject, ground)) for key in binary_keys(said)]
    kept = tuple(filter(None, binaries))
    faults.problems += unpinned_paths(subject, ground.repository, facts)
    if faults.problems or vocabulary is None:
        raise FreezeRefused(faults.problems)
    interpreter = describe_interpreter(facts, said.interpreter)
    return FrozenEngine(sources, tuple(filter(None, models)), interpreter, vocabulary, kept)


def freeze_worker_side(subject: Subject, ground: Ground, progress: Progress) -> FrozenEngine:
    """Verify what runs on the machine where no server is started: sources, and an interpreter that has torch.

    Raises:
        FreezeRefused: with every source that is not as declared, or for want of torch (NOT_FOUND).
    """
    said, faults = subject.preregistration, _Faults()
    progress(f"asking the interpreter `{said.interpreter}` what it is")
    facts = ask_interpreter(interpreter_path(subject.host, said.interpreter, ground.repository))
    sources = _freeze_sources((subject, ground), facts, faults, progress)
    if facts.find("torch") is None:
        do = "install torch into it, or name another interpreter"
        faults.problems.append(Problem(Code.NOT_FOUND, str(facts.path), "an interpreter with torch", "none", do))
    if faults.problems:
        raise FreezeRefused(faults.problems)
    return FrozenEngine(sources, (), describe_interpreter(facts, said.interpreter), None)


def _freeze_sources(
    place: tuple[Subject, Ground], facts: InterpreterFacts, faults: _Faults, progress: Progress
) -> tuple[FrozenSource, ...]:
    subject, ground = place
    sources = []
    for index, source in enumerate(subject.preregistration.sources):
        progress(f"hashing source {source_name(source)}")
        sources.append(faults.of(partial(freeze_source, source, subject.host.sources, ground.repository, facts)))
        faults.of(partial(_prove_series, index, subject, ground, progress))
    return tuple(filter(None, sources))


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


def binary_keys(said: Preregistration) -> tuple[str, ...]:
    """The keys of the sets of compiled files in which the arms differ."""
    return tuple(said.treatment.manifests()) if isinstance(said.treatment, BinariesTreatment) else ()


def _freeze_binaries(key: str, subject: Subject, ground: Ground) -> FrozenModelFiles:
    folder = machine_key(subject.host.binaries, key, ground.repository)
    return verify_model(key, folder, subject.input(binaries_role(key)))


def _freeze_model(name: str, subject: Subject, repository: Path) -> FrozenModelFiles:
    return verify_model(name, machine_key(subject.host.models, name, repository), subject.input(manifest_role(name)))
