"""From a tree to a model, with every fault at once: what can be guessed is repaired for the sake of the later checks.

A misspelt key hides what stands below it, and any fault of form hides the rules between fields. So a fault whose
meaning is plain (a near key, a near word, a key too many, wrong quotes) is reported, repaired in a copy and the copy is
checked again. A repaired model is never used for anything but finding more faults.
"""

import copy
import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydantic import ValidationError

from labctl.codes import Code
from labctl.errors import Problem
from labctl.frozen import FrozenModel
from labctl.prereg.finding import Finding, before_others
from labctl.prereg.places import Places, TreePath
from labctl.prereg.strict_yaml import Tree, YamlDocument

MAX_REPAIRS = 8
CheckedT = TypeVar("CheckedT", bound=FrozenModel)
Rules = Callable[[CheckedT], Iterable[Finding]]


def validate(
    document: YamlDocument, kind: type[CheckedT], rules: Rules[CheckedT]
) -> tuple[CheckedT | None, Places, tuple[Problem, ...]]:
    """The model (perhaps repaired), the places of its values, and every problem in the order of the file."""
    tree, places, guessed = document.tree, document.places, set(document.faulty)
    problems = list(document.problems)
    model = None
    for _ in range(MAX_REPAIRS):  # pragma: no branch (a bound that no known file reaches)
        model, findings = _parse(tree, kind)
        problems += _reported(findings, places, guessed)
        if model is not None or not all(map(_is_plain, findings)):
            break
        # nobody wrote the text that stands in for a mapping, so nothing is said of it
        guessed |= {finding.path for finding in findings if finding.meant and isinstance(_at(tree, finding.path), dict)}
        tree, places = _repair(tree, places, findings)
    if model is not None:
        problems += _reported(rules(model), places, guessed)
    problems = list(dict.fromkeys(sorted(problems, key=_line_and_column)))
    if model is None:
        problems[-1] = before_others(problems[-1])
    return model, places, tuple(problems)


def _parse(tree: Tree, kind: type[CheckedT]) -> tuple[CheckedT | None, list[Finding]]:
    try:
        return kind.model_validate_json(json.dumps(tree)), []
    except ValidationError as error:
        from labctl.prereg.grammar import findings_of  # noqa: PLC0415 (start-up time; only a fault needs it)

        return None, findings_of(error, tree, kind)


def _reported(findings: Iterable[Finding], places: Places, faulty: set[TreePath]) -> list[Problem]:
    return [
        finding.at(places)
        for finding in findings
        if not any(finding.path[:length] in faulty for length in range(len(finding.path) + 1))
    ]


def _is_plain(finding: Finding) -> bool:
    return finding.code is Code.UNKNOWN_KEY or bool(finding.meant)


def _at(tree: Tree, path: TreePath) -> Tree:
    node: Any = tree
    for part in path:
        node = node[part]
    return node  # type: ignore[no-any-return] # a part of a tree is a tree


def _repair(tree: Tree, places: Places, findings: Iterable[Finding]) -> tuple[Tree, Places]:
    mended: Any = copy.deepcopy(tree)
    for finding in findings:
        node: Any = _at(mended, finding.path[:-1])
        last = finding.path[-1]
        if finding.meant:
            node[last] = finding.meant[0]
            continue
        value = node.pop(last)
        if finding.guess and finding.guess not in node:
            node[finding.guess] = value
            places = _moved(places, finding.path, (*finding.path[:-1], finding.guess))
    return mended, places


def _moved(places: Places, old: TreePath, new: TreePath) -> Places:
    def moved(path: TreePath) -> TreePath:
        return new + path[len(old) :] if path[: len(old)] == old else path

    return Places(
        places.file,
        {moved(path): spot for path, spot in places.keys.items()},
        {moved(path): spot for path, spot in places.values.items()},
    )


def _line_and_column(problem: Problem) -> tuple[int, int]:
    line, column = problem.where.rsplit(":", 2)[1:]
    return int(line), int(column)
