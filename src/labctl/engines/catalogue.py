"""The engines that labctl knows, by the name that preregistrations use."""

from labctl.codes import Code
from labctl.engines import reference, vllm
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import FreezeRefused, Problem

ENGINES = ("reference", "vllm")


def engine_distributions(engine: str) -> tuple[str, ...]:
    """The distributions any of which is the engine, by name; empty for the embedded endpoint, which is labctl's own."""
    return vllm.DISTRIBUTIONS if engine == "vllm" else ()


def vocabulary_for(engine: str, version: str) -> EngineVocabulary:
    """What an engine calls things at one version.

    Raises:
        FreezeRefused: the engine or the version is not known (WRONG_VALUE).
    """
    match engine:
        case "reference":
            found = reference.VOCABULARY if version == reference.VERSION else None
            known = reference.VERSION
        case "vllm":
            found, known = vllm.resolve_vocabulary(version), vllm.VERSIONS
        case _:
            raise unknown_engine(engine)
    if found is None:
        do = "serve a known version, or add what this one calls things"
        raise FreezeRefused(Problem(Code.WRONG_VALUE, f"engine {engine}", f"version {known}", version, do))
    return found


def unknown_engine(engine: str) -> FreezeRefused:
    """The refusal of an engine that no module here describes."""
    do = "name a known engine, or add what this one calls things"
    return FreezeRefused(
        Problem(Code.WRONG_VALUE, "service.engine", f"one of {', '.join(ENGINES)}", repr(engine)[:80], do)
    )
