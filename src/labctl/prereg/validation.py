"""From a tree to a model, with every fault at once: what can be guessed is repaired for the sake of the later checks.

A misspelt key hides what stands below it, and any fault of form hides the rules between fields. So a fault whose
meaning is plain (a near key, a near word, a key too many) is reported, repaired in a copy and the copy is checked
again. A repaired model is never used for anything but finding more faults.
"""

import copy
import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydantic import ValidationError

from labctl.codes import Code
from labctl.errors import Problem
from labctl.frozen import FrozenModel
from labctl.prereg.finding import Finding
from labctl.prereg.places import Places, TreePath
from labctl.prereg.strict_yaml import Tree, YamlDocument

MAX_REPAIRS = 8
CheckedT = TypeVar("CheckedT", bound=FrozenModel)
Rules = Callable[[CheckedT], Iterable[Finding]]


def validate(
    document: YamlDocument, kind: type[CheckedT], rules: Rules[CheckedT]
) -> tuple[CheckedT | None, Places, tuple[Problem, ...]]:
    """The model (perhaps repaired), the places of its values, and every problem in the order of the file."""
    tree, places = document.tree, document.places
    problems = list(document.problems)
    model = None
    for _ in range(MAX_REPAIRS):  # pragma: no branch (a bound that no known file reaches)
        model, findings = _parse(tree, kind)
        problems += _reported(findings, places, document.faulty)
        if model is not None or not all(map(_is_plain, findings)):
            break
        tree, places = _repair(tree, places, findings)
    if model is not None:
        problems += _reported(rules(model), places, document.faulty)
    return model, places, tuple(dict.fromkeys(sorted(problems, key=_line_and_column)))


def _parse(tree: Tree, kind: type[CheckedT]) -> tuple[CheckedT | None, list[Finding]]:
    try:
        return kind.model_validate_json(json.dumps(tree)), []
    except ValidationError as error:
        from labctl.prereg.grammar import findings_of  # noqa: PLC0415 (start-up time; only a fault needs it)

        return None, findings_of(error, tree, kind)


def _reported(findings: Iterable[Finding], places: Places, faulty: frozenset[TreePath]) -> list[Problem]:
    return [
        finding.at(places)
        for finding in findings
        if not any(finding.path[:length] in faulty for length in range(len(finding.path) + 1))
    ]


def _is_plain(finding: Finding) -> bool:
    return finding.code is Code.UNKNOWN_KEY or (finding.code is Code.WRONG_VALUE and finding.guess is not None)


def _repair(tree: Tree, places: Places, findings: Iterable[Finding]) -> tuple[Tree, Places]:
    mended: Any = copy.deepcopy(tree)
    for finding in findings:
        node = mended
        for part in finding.path[:-1]:
            node = node[part]
        last = finding.path[-1]
        if finding.code is Code.WRONG_VALUE:
            node[last] = finding.guess
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
