"""Rules for components: every name leads somewhere, every shape is known, and every gate has something to look at."""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from labctl.prereg.component_model import ComponentPreregistration, MustRaise, Term, component_gate_id
from labctl.prereg.extents import extent_of, factors_of
from labctl.prereg.finding import Anchor, Finding
from labctl.prereg.places import TreePath
from labctl.prereg.rules.head import HEAD_RULES, environment_findings
from labctl.prereg.rules.names import repeated
from labctl.prereg.words import nearest


def names_are_unique(said: ComponentPreregistration) -> Iterator[Finding]:
    """Rows, boundaries and verdicts speak of these by name."""
    named = (
        ("cases", [case.name for case in said.cases]),
        ("buffers", [buffer.name for buffer in said.buffers]),
        ("boundaries", [boundary.name for boundary in said.boundaries]),
        ("microcases", [microcase.name for microcase in said.microcases]),
    )
    yield from repeated(("arms",), (), said.arms)
    for field, names in named:
        yield from repeated((field,), ("name",), names)
    yield from repeated(("files",), (), [PurePosixPath(file).name for file in said.files])
    gates = [component_gate_id(gate) for gate in said.gates]
    for index, name in enumerate(gates):
        if name in gates[:index]:
            key = "id" if said.gates[index].id else "kind"
            yield Finding(
                ("gates", index, key), "gate ids that differ", f"{name} again", "remove it, or give it an `id`"
            )


def cases_give_the_same_dimensions(said: ComponentPreregistration) -> Iterator[Finding]:
    """Every case gives the same dimensions, none of which is shared already, and no two cases are equal."""
    wanted = set(said.cases[0].values)
    for index, case in enumerate(said.cases):
        path: TreePath = ("cases", index, "values")
        if set(case.values) != wanted:
            expected = f"values for {_list(wanted)}, as in the first case"
            yield Finding(path, expected, _list(case.values), "give each case the same dimensions")
        for name in sorted(set(case.values) & set(said.dimensions)):
            do = "remove it here or there"
            yield Finding((*path, name), "a dimension that `dimensions` does not give", name, do, anchor=Anchor.KEY)
        if case.values in [other.values for other in said.cases[:index]]:
            yield Finding(path, "values that no other case has", "those of another case", "change or remove one")


def shapes_are_known(said: ComponentPreregistration) -> Iterator[Finding]:
    """Each factor of each extent is an integer or a dimension that every case knows."""
    known = sorted({*said.dimensions, *said.cases[0].values})
    terms: list[tuple[TreePath, Term]] = [
        (("buffers", index, "shape", place), term)
        for index, buffer in enumerate(said.buffers)
        for place, term in enumerate(buffer.shape)
    ]
    if said.caches is not None:
        terms.append((("caches", "count"), said.caches.count))
    for path, term in terms:
        for factor in factors_of(term):
            if isinstance(factor, str) and factor not in known:
                guess = nearest(factor, known)
                do = f"did you mean `{guess}`?" if guess else "add it to `dimensions`, or to each case"
                yield Finding(path, f"integers and dimensions ({_list(known)})", factor, do)
            if factor == 0:
                yield Finding(path, "extents of 1 or more", str(term), "correct it")


def boundaries_are_views(said: ComponentPreregistration) -> Iterator[Finding]:
    """A boundary is a buffer, or one index along one of its dimensions."""
    shapes = {buffer.name: buffer.shape for buffer in said.buffers}
    for index, boundary in enumerate(said.boundaries):
        path: TreePath = ("boundaries", index)
        shape = shapes.get(boundary.of)
        if shape is None:
            guess = nearest(boundary.of, shapes)
            do = f"did you mean `{guess}`?" if guess else "declare it under `buffers`"
            yield Finding((*path, "of"), f"a buffer ({_list(shapes)})", boundary.of, do)
        elif boundary.select is not None:
            yield from _selection(said, (*path, "select"), shape, (boundary.select.dim, boundary.select.index))


def _selection(
    said: ComponentPreregistration, path: TreePath, shape: tuple[Term, ...], selected: tuple[int, int]
) -> Iterator[Finding]:
    dim, index = selected
    if dim >= len(shape):
        got = str(dim)
        yield Finding((*path, "dim"), f"a dimension of the buffer, 0 to {len(shape) - 1}", got, "correct it")
        return
    extents = [extent_of(shape[dim], {**said.dimensions, **case.values}) for case in said.cases]
    smallest = min((extent for extent in extents if extent is not None), default=None)
    if smallest is not None and index >= smallest:
        expected = f"an index below {smallest}, the extent of dimension {dim}"
        yield Finding((*path, "index"), expected, str(index), "correct it")


def microcases_name_what_is_there(said: ComponentPreregistration) -> Iterator[Finding]:
    """A microcase runs in an arm and at a size that are declared, or at a size that no case has."""
    cases = [case.name for case in said.cases]
    for index, microcase in enumerate(said.microcases):
        path: TreePath = ("microcases", index)
        yield from _one_of((*path, "arm"), microcase.arm, said.arms)
        if isinstance(microcase, MustRaise):
            yield from _one_of((*path, "case"), microcase.case, cases)
        elif set(microcase.values) != set(said.cases[0].values):
            expected = f"values for {_list(said.cases[0].values)}, as in the cases"
            yield Finding((*path, "values"), expected, _list(microcase.values), "give the same dimensions")
        elif microcase.values in [case.values for case in said.cases]:
            expected, got = "a size that no case has", "the size of a case, which is not inert"
            yield Finding((*path, "values"), expected, got, "choose another size")


def _one_of(path: TreePath, name: str, known: tuple[str, ...] | list[str]) -> Iterator[Finding]:
    if name not in known:
        guess = nearest(name, known)
        do = f"did you mean `{guess}`?" if guess else "name one of them"
        yield Finding(path, f"one of {', '.join(known)}", name, do)


def gates_have_something_to_judge(said: ComponentPreregistration) -> Iterator[Finding]:
    """A gate with nothing to look at cannot fail; what is declared and not gated would not count."""
    kinds = [gate.kind for gate in said.gates]
    needs = (("microcases", bool(said.microcases)), ("weights_unchanged", said.checkpoint is not None))
    for kind, is_there in needs:
        if kind in kinds and not is_there:
            what = "microcases" if kind == "microcases" else "checkpoint"
            path: TreePath = ("gates", kinds.index(kind), "kind")
            yield Finding(path, f"`{what}` for a gate to look at", "none", f"add `{what}`, or remove the gate")
        if is_there and kind not in kinds:
            key = "microcases" if kind == "microcases" else "checkpoint"
            expected = f"a gate of kind {kind}"
            yield Finding((key,), expected, "none", "add the gate", anchor=Anchor.KEY)
    if "rows_exact" not in kinds:
        yield Finding(("gates",), "a gate of kind rows_exact", "none", "add it: a pass claims exact rows")


def files_have_names_of_their_own(said: ComponentPreregistration) -> Iterator[Finding]:
    """The worker itself is no input of the worker."""
    for index, file in enumerate(said.files):
        if file == said.worker.file:
            yield Finding(("files", index), "a file beside the worker", "the worker itself", "remove it")


def worker_environment_is_harmless(said: ComponentPreregistration) -> Iterator[Finding]:
    """Nothing that labctl sets, that loads code, that selects a card, or that names a secret."""
    yield from environment_findings(("worker", "environment"), said.worker.environment)


COMPONENT_RULES = (
    *HEAD_RULES,
    names_are_unique,
    cases_give_the_same_dimensions,
    shapes_are_known,
    boundaries_are_views,
    microcases_name_what_is_there,
    gates_have_something_to_judge,
    files_have_names_of_their_own,
    worker_environment_is_harmless,
)


def component_findings(said: ComponentPreregistration) -> Iterator[Finding]:
    """Everything that contradicts itself within one component campaign."""
    for rule in COMPONENT_RULES:
        yield from rule(said)


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
