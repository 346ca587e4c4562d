"""Rules for the service: its placeholders, its environment, and what it names elsewhere."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import takewhile

from labctl.codes import Code
from labctl.engines.catalogue import ENGINES
from labctl.prereg.any_campaign import AnyPreregistration
from labctl.prereg.arms import PLACEHOLDER
from labctl.prereg.environment import holds_password, objection_to
from labctl.prereg.field_types import PLACEHOLDERS
from labctl.prereg.finding import Anchor, Finding
from labctl.prereg.model import Preregistration
from labctl.prereg.places import TreePath
from labctl.prereg.sources import GitSource
from labctl.prereg.treatment_kinds import ArgumentTreatment, BinariesTreatment, EnvironmentTreatment
from labctl.prereg.words import nearest

_LOOKS_LIKE_PLACEHOLDER = re.compile(r"\{\s*[A-Za-z_][A-Za-z0-9_]*\s*(?::[^{}\"]*)?\}")
_INTERPRETER_OPTIONS = re.compile(r"-([bBdEhiIOPqsSuvVx]*)")
TARGET = "target"
BINARIES = "{binaries}"
_BELOW_BINARIES = re.compile(r"\{binaries\}(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_SEARCH_PATHS = frozenset({"LD_LIBRARY_PATH", "PYTHONPATH"})
_SECRET_OPTIONS = frozenset({"--api-key", "--hf-token"})


def templates(preregistration: Preregistration) -> Iterator[tuple[TreePath, str]]:
    """Every text in which placeholders are replaced, with its path."""
    service, treatment = preregistration.service, preregistration.treatment
    for index, part in enumerate(service.command):
        yield ("service", "command", index), part
    for name, value in service.environment.items():
        yield ("service", "environment", name), value
    if treatment is not None:
        for arm, setting in (("control", treatment.control), ("candidate", treatment.candidate)):
            if isinstance(setting, str):
                yield ("treatment", arm), setting


def placeholders_are_known(preregistration: Preregistration) -> Iterator[Finding]:
    """Only the closed list of placeholders, and only models that are declared."""
    known = _known(preregistration)
    for path, found in _unknown(templates(preregistration), known):
        yield _unknown_placeholder(path, found, known)
    checks = (
        (("host_checks", index, "command", position), part)
        for index, check in enumerate(preregistration.host_checks)
        for position, part in enumerate(check.command)
    )
    for path, found in _unknown(checks, ["{python}"]):
        yield _unknown_placeholder(path, found, ["{python}"])


def _known(preregistration: Preregistration) -> list[str]:
    has_sets = isinstance(preregistration.treatment, BinariesTreatment)
    fixed = [name for name in PLACEHOLDERS if name != "{model:NAME}" and (has_sets or name != BINARIES)]
    return fixed + [f"{{model:{model.name}}}" for model in preregistration.models]


def _unknown(texts: Iterable[tuple[TreePath, str]], known: list[str]) -> Iterator[tuple[TreePath, str]]:
    for path, text in texts:
        for match in _LOOKS_LIKE_PLACEHOLDER.finditer(text):
            if match[0] not in known:
                yield path, match[0]


def _unknown_placeholder(path: TreePath, found: str, known: list[str]) -> Finding:
    guess = nearest(found, known)
    do = f"did you mean `{guess}`?" if guess else "use one of them, or declare the model under `models`"
    return Finding(path, f"one of {' '.join(known)}", found, do, Code.UNKNOWN_PLACEHOLDER)


def address_is_ours(preregistration: Preregistration) -> Iterator[Finding]:
    """The server listens where labctl says."""
    known = _known(preregistration)
    texts = [*preregistration.service.command, *preregistration.service.environment.values()]
    texts += [nearest(found, known) or "" for _, found in _unknown(templates(preregistration), known)]  # said already
    for placeholder in ("{host}", "{port}"):
        if not any(placeholder in text for text in texts):
            do = f"pass {placeholder} to the server"
            yield Finding(("service", "command"), f"{placeholder} in the command", "none", do)


def engine_is_known(preregistration: Preregistration) -> Iterator[Finding]:
    """Somebody has written down what the engine calls its counters, options and log lines."""
    engine = preregistration.service.engine
    if engine not in ENGINES:
        guess = nearest(engine, ENGINES)
        do = f"did you mean `{guess}`?" if guess else "serve a known engine"
        yield Finding(("service", "engine"), f"one of {', '.join(ENGINES)}", engine, do, Code.WRONG_VALUE)


def command_starts_with_the_interpreter(preregistration: Preregistration) -> Iterator[Finding]:
    """The interpreter that is pinned is the one that runs."""
    if preregistration.service.command[0] != "{python}":
        got = preregistration.service.command[0]
        yield Finding(("service", "command", 0), '"{python}" as the first part', got, 'start with "{python}"')


def python_looks_at_its_environment(preregistration: Preregistration) -> Iterator[Finding]:
    """Byte code beside an engine is in no RECORD; the variable that keeps it away must be read, by children too."""
    parts = enumerate(preregistration.service.command[1:], start=1)
    for index, part in takewhile(lambda numbered: numbered[1].startswith("-"), parts):
        letters = _INTERPRETER_OPTIONS.match(part)
        if letters and {*letters[1]} & {*"IE"}:
            got, do = f"{part}, which ignores them", "write -P; the environment is closed already"
            yield Finding(("service", "command", index), "an interpreter that reads PYTHON variables", got, do)
        if letters and part[len(letters[0]) :][:1] in {*"mc"}:
            return


def models_are_used(preregistration: Preregistration) -> Iterator[Finding]:
    """A model that is pinned is a model that is served."""
    texts = list(templates(preregistration))
    known = _known(preregistration)
    used = {match[0] for _, text in texts for match in PLACEHOLDER.finditer(text)}
    used |= {nearest(found, known) or "" for _, found in _unknown(texts, known)}  # said already
    for index, model in enumerate(preregistration.models):
        if f"{{model:{model.name}}}" not in used:
            expected = f"{{model:{model.name}}} in the command, environment or treatment"
            yield Finding(("models", index, "name"), expected, "no use of it", "use it, or remove the model")


def several_models_have_a_target(preregistration: Preregistration) -> Iterator[Finding]:
    """Attempts are counted for what is improved: of several models, the one that is named `target`, in any order."""
    names = [model.name for model in preregistration.models]
    if len(names) > 1 and TARGET not in names:
        do = f"name the model that is improved `{TARGET}`"
        yield Finding(("models",), f"one of several models named {TARGET}", ", ".join(names), do)


def binaries_are_used(preregistration: Preregistration) -> Iterator[Finding]:
    """A set of compiled files in which the arms differ is one that the service is told of."""
    if not isinstance(preregistration.treatment, BinariesTreatment):
        return
    if not any(BINARIES in text for _, text in templates(preregistration)):
        expected, do = f"{BINARIES} in the command or environment", f"pass {BINARIES} to the server"
        yield Finding(("treatment", "binaries"), expected, "no use of it", do)


def names_are_unique(preregistration: Preregistration) -> Iterator[Finding]:
    """Models, sources and host checks are named once each."""
    yield from _repeated("models", ("name",), [model.name for model in preregistration.models])
    sources = preregistration.sources
    yield from _repeated("sources", (), [s.git if isinstance(s, GitSource) else s.installed for s in sources])
    yield from _repeated("host_checks", ("name",), [check.name for check in preregistration.host_checks])


def patch_series_start_somewhere(preregistration: AnyPreregistration) -> Iterator[Finding]:
    """A patch series has a base other than its result, and a base has a series."""
    for index, source in enumerate(preregistration.sources):
        if not isinstance(source, GitSource):
            continue
        path: TreePath = ("sources", index)
        if (source.base is None) != (source.patches is None):
            got = "`patches` alone" if source.base is None else "`base` alone"
            yield Finding(path, "`base` and `patches` together", got, "add the other, or remove it")
        if source.base == source.commit:
            yield Finding((*path, "base"), "a base that the patches change", "the commit itself", "name its base")


def _repeated(field: str, rest: TreePath, names: list[str]) -> Iterator[Finding]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Finding((field, index, *rest), "each name once", f"{name} again", "remove or rename it")


def environment_is_harmless(preregistration: Preregistration) -> Iterator[Finding]:
    """No variable that labctl sets, that loads code, that redirects, or that names a secret."""
    for name, value in preregistration.service.environment.items():
        # a search path that holds the arm's own pinned folder and nothing else brings in nothing from elsewhere
        is_own_folder = name in _SEARCH_PATHS and _BELOW_BINARIES.fullmatch(value) is not None
        if not is_own_folder and (objection := objection_to(name)):
            path = ("service", "environment", name)
            yield Finding(path, "a variable of the engine", f"{name}, {objection}", "remove it", anchor=Anchor.KEY)
    treatment = preregistration.treatment
    if isinstance(treatment, EnvironmentTreatment) and (objection := objection_to(treatment.environment)):
        got = f"{treatment.environment}, {objection}"
        yield Finding(("treatment", "environment"), "a variable of the engine", got, "treat another variable")


def environment_names_differ_by_more_than_case(preregistration: Preregistration) -> Iterator[Finding]:
    """Two variables that differ by case alone are a slip."""
    counts = Counter(name.upper() for name in preregistration.service.environment)
    for name in preregistration.service.environment:
        if counts[name.upper()] > 1 and name != name.upper():
            path = ("service", "environment", name)
            got = f"{name} beside {name.upper()}"
            yield Finding(path, "names that differ by more than case", got, "keep one", anchor=Anchor.KEY)


def command_holds_no_secret(preregistration: Preregistration) -> Iterator[Finding]:
    """Packets and runs are published; a key in a command would be too."""
    for path, part in _arguments(preregistration):
        if part.partition("=")[0] in _SECRET_OPTIONS:
            yield Finding(path, "no secret in a command", part.partition("=")[0], "remove it; the server is local")
    for path, text in templates(preregistration):
        if holds_password(text):
            yield Finding(path, "no password in what is published", "an address with one", "remove it")


def _arguments(preregistration: Preregistration) -> Iterable[tuple[TreePath, str]]:
    for index, part in enumerate(preregistration.service.command):
        yield ("service", "command", index), part
    if isinstance(preregistration.treatment, ArgumentTreatment):
        yield ("treatment", "argument"), preregistration.treatment.argument


SERVICE_RULES = (
    engine_is_known,
    placeholders_are_known,
    address_is_ours,
    command_starts_with_the_interpreter,
    python_looks_at_its_environment,
    models_are_used,
    several_models_have_a_target,
    binaries_are_used,
    names_are_unique,
    patch_series_start_somewhere,
    environment_is_harmless,
    environment_names_differ_by_more_than_case,
    command_holds_no_secret,
)
