"""What the engine in an interpreter calls things, by the version that is installed there."""

from labctl.codes import Code
from labctl.engines import reference
from labctl.engines.catalogue import ENGINES, engine_distributions, unknown_engine, vocabulary_for
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import FreezeRefused, Problem
from labctl.packet.interpreter import InterpreterFacts


def resolve_vocabulary(engine: str, facts: InterpreterFacts) -> EngineVocabulary:
    """The vocabulary of the engine that an interpreter has.

    Raises:
        FreezeRefused: the engine is not known, not installed there, or of an unknown version.
    """
    return vocabulary_for(engine, engine_version(engine, facts))


def engine_version(engine: str, facts: InterpreterFacts) -> str:
    """The version of the engine that an interpreter has.

    Raises:
        FreezeRefused: the engine is not known, or not installed there.
    """
    if engine not in ENGINES:
        raise unknown_engine(engine)
    names = engine_distributions(engine)
    if not names:
        return reference.VERSION
    found = next((found for name in names if (found := facts.find(name)) is not None), None)
    if found is None:
        expected, do = (
            f"one of the packages {', '.join(names)}",
            "install the engine there, or name another interpreter",
        )
        raise FreezeRefused(Problem(Code.NOT_FOUND, str(facts.path), expected, "none", do))
    return found.version
