"""From pydantic's errors to labctl's findings: each with its path in the file, and the nearest word that is right."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from labctl.codes import Code
from labctl.frozen import FrozenModel
from labctl.prereg.finding import Anchor, Finding
from labctl.prereg.known_keys import known_keys
from labctl.prereg.places import TreePath
from labctl.prereg.scalars import read_plain
from labctl.prereg.words import nearest, shown

_TYPE_NAMES = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "float_type": "a number",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "null",
}
_LENGTHS = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}
_WANT_TEXT = {"string_type", "string_pattern_mismatch"}
_WANT_MAPPING = {"dict_type", "model_type", "model_attributes_type"}
_TRUTHS = {"true": True, "yes": True, "on": True, "y": True, "false": False, "no": False, "off": False, "n": False}
_KIND_ERRORS = {"source_kind", "proof_kind", "treatment_kind"}
_PATTERN_NAMES = {
    r"^[0-9a-f]{64}$": "64 lower-case hex digits",
    r"^([0-9a-f]{40}|[0-9a-f]{64})$": "a full object id of 40 or 64 lower-case hex digits",
    r"^-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?$": 'a decimal in quotes, such as "0.25"',
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$": "a name of letters, digits, dot, hyphen and underscore",
    r"^[a-z0-9][a-z0-9-]{0,62}$": "lower-case letters, digits and hyphens",
    r"^[AB][1-9][0-9]?$": "a leg such as A1 or B2",
    r"^[a-z][a-z0-9_]{0,62}$": "lower-case letters, digits and underscores",
    r"^[a-z0-9][a-z0-9_]*(\*[a-z0-9][a-z0-9_]*)*$": "a product such as 2*heads*head_size",
    r"^[a-z][a-z0-9_-]{0,62}$": "lower-case letters, digits, hyphens and underscores",
    r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$": "a path below campaigns/ such as suites/a.yaml",
    r"^[A-Za-z_][A-Za-z0-9_]{0,127}$": "the name of an environment variable",
    r"^[a-z_][a-z0-9_]{0,62}$": "the name of a group of a regular expression",
    r"^[^\r\n]+$": "one line of text",
    r"^[^<>\r\n]+ <[^<>@\s]+@[^<>@\s]+>$": "`Name <mail@host>`",
    r"^--?[A-Za-z0-9][A-Za-z0-9._-]*$": "an option such as --speculative-config",
}


def findings_of(error: ValidationError, tree: object, model: type[FrozenModel]) -> list[Finding]:
    """Every fault that one validation found, once each."""
    groups: dict[TreePath, list[_Fault]] = {}
    for issue in error.errors(include_url=False):
        fault = _Fault(issue, tree)
        groups.setdefault(fault.path, []).append(fault)
    groups = {path: faults for path, faults in groups.items() if not _has_deeper(path, groups)}
    unknown = [path for path, faults in groups.items() if faults[0].kind == "unknown"]
    meant = {path: _suggestion(path, groups, tree, model) for path in unknown}
    for path, guess in meant.items():
        if guess:
            groups.pop((*path[:-1], guess), None)  # its absence is the same fault

    def keys_at(mapping: TreePath) -> list[str]:
        return known_keys(model, mapping, tree)

    return [_finding(path, faults, meant.get(path), keys_at) for path, faults in groups.items()]


class _Fault:
    """One pydantic error, bound to a path of the tree instead of a path of the models."""

    def __init__(self, issue: ErrorDetails, tree: object) -> None:
        self.issue = issue
        self.type = issue["type"]
        self.kind = {"missing": "missing", "extra_forbidden": "unknown"}.get(self.type, "value")
        if self.type == "union_tag_not_found" or self.type in _KIND_ERRORS:
            self.kind = "missing"
        self.is_key = "[key]" in issue["loc"]
        loc = tuple(part for part in issue["loc"] if part != "[key]")
        if self.type == "missing":
            self.path = (*_resolve_mapping(loc[:-1], tree), loc[-1])
        elif self.type in {"union_tag_invalid", "union_tag_not_found"}:
            self.path = (*_resolve(loc, tree), _discriminator(issue))
        else:
            self.path = _resolve(loc, tree)


def _discriminator(issue: ErrorDetails) -> str:
    return str(issue.get("ctx", {}).get("discriminator", "'kind'")).strip("'")


class _Reading(NamedTuple):
    """One way to walk a tree along a path of the models."""

    path: TreePath
    unused: int  # parts of the models' path after the last that was walked
    node: Any


def _resolve(loc: TreePath, tree: object) -> TreePath:
    """The path of the tree that a path of the models means; union branches are no part of the tree."""
    return max(_readings(loc, tree), key=lambda reading: (len(reading.path), -reading.unused)).path


def _resolve_mapping(loc: TreePath, tree: object) -> TreePath:
    """The same for a mapping that lacks a key; a branch may be named like a key of it, which is then not meant."""
    mappings = [reading for reading in _readings(loc, tree) if isinstance(reading.node, dict)]
    return max(mappings, key=lambda reading: (len(reading.path), -reading.unused)).path


def _readings(loc: TreePath, node: Any) -> Iterator[_Reading]:  # noqa: ANN401 (a tree)
    yield _Reading((), len(loc), node)
    for index, part in enumerate(loc):
        is_item = isinstance(node, list) and isinstance(part, int) and part < len(node)
        if is_item or (isinstance(node, dict) and part in node):
            for rest in _readings(loc[index + 1 :], node[part]):
                yield rest._replace(path=(part, *rest.path))


def _has_deeper(path: TreePath, paths: Iterable[TreePath]) -> bool:
    return any(len(other) > len(path) and other[: len(path)] == path for other in paths)


def _suggestion(
    path: TreePath, groups: Mapping[TreePath, object], tree: object, model: type[FrozenModel]
) -> str | None:
    mapping: Any = tree
    for part in path[:-1]:
        mapping = mapping[part]
    known = [key for key in known_keys(model, path[:-1], tree) if key not in mapping]
    missing = [key for key in known if (*path[:-1], key) in groups]
    word = str(path[-1])
    return nearest(word, missing) or nearest(word, known)


def _finding(
    path: TreePath, faults: list[_Fault], guess: str | None, keys_at: Callable[[TreePath], list[str]]
) -> Finding:
    match faults[0].kind:
        case "unknown":
            return _unknown(path, guess)
        case "missing":
            return _missing(path, faults[0], keys_at)
        case _:
            return _wrong(path, faults)


def _unknown(path: TreePath, guess: str | None) -> Finding:
    do = f"did you mean `{guess}`?" if guess else "remove it"
    return Finding(path, "a known key", f"`{path[-1]}`", do, Code.UNKNOWN_KEY, Anchor.KEY, guess)


def _missing(path: TreePath, fault: _Fault, keys_at: Callable[[TreePath], list[str]]) -> Finding:
    if fault.type == "missing":
        return Finding(path, f"the key `{path[-1]}`", "no such key", "add it", Code.MISSING_KEY)
    mapping = path[:-1] if fault.type == "union_tag_not_found" else path
    wanted = [str(path[-1])] if fault.type == "union_tag_not_found" else fault.issue["msg"].split("`")[1::2]
    words = " or ".join(f"`{word}`" for word in wanted)
    if not isinstance(fault.issue["input"], dict):
        got = shown(fault.issue["input"])
        return Finding(mapping, f"a mapping with {words}", got, "write a mapping", Code.WRONG_TYPE)
    known = keys_at(mapping)
    for key in fault.issue["input"]:
        if key not in known and (guess := nearest(key, wanted)):
            return _unknown((*mapping, key), guess)
    return Finding((*mapping, wanted[0]), f"the key {words}", "no such key", "add it", Code.MISSING_KEY)


def _wrong(path: TreePath, faults: list[_Fault]) -> Finding:
    anchor = Anchor.KEY if faults[0].is_key else Anchor.VALUE
    value = path[-1] if faults[0].is_key else faults[0].issue["input"]
    if faults[0].type == "union_tag_invalid":
        value = faults[0].issue["ctx"]["tag"]
    expected = " or ".join(dict.fromkeys(_expected(fault) for fault in faults))
    is_type = all(fault.type in _TYPE_NAMES for fault in faults)
    code = Code.WRONG_TYPE if is_type else Code.WRONG_VALUE
    allowed = [word for fault in faults for word in _allowed(fault)]
    guess = nearest(value, allowed) if isinstance(value, str) else None
    meant, do = ((guess,), f"did you mean `{guess}`?") if guess else _advice(faults, value)
    return Finding(path, expected, shown(value), do, code, anchor, meant=() if faults[0].is_key else meant)


def _expected(fault: _Fault) -> str:
    context = fault.issue.get("ctx", {})
    if fault.type in _TYPE_NAMES:
        return _TYPE_NAMES[fault.type]
    if fault.type == "union_tag_invalid":
        return f"one of {context['expected_tags']}"
    if fault.type == "string_pattern_mismatch":
        return _PATTERN_NAMES.get(context["pattern"], f"text that matches {context['pattern']}")
    if fault.type in _LENGTHS:
        words, key = _LENGTHS[fault.type]
        return f"{words} {context[key]} of them"
    words = str(fault.issue["msg"]).removeprefix("Input should be ").removeprefix("Input should ")
    return {"True": "true", "False": "false"}.get(words, words)


def _advice(faults: list[_Fault], value: object) -> tuple[tuple[object, ...], str]:
    """The value that was meant, where no more than its quotes are wrong, and what to do."""
    wanted = {fault.type for fault in faults}
    if isinstance(value, str):
        meant = _unquoted(faults, value)
        return meant, "remove the quotes" if meant else "correct it"
    if wanted & _WANT_TEXT and isinstance(value, bool | int | float):
        or_null = "write null for an absent option, or " if value is False and "literal_error" in wanted else ""
        return (shown(value),), f'{or_null}quote it as "{shown(value)}"'
    if wanted & _WANT_TEXT and isinstance(value, dict) and not wanted & _WANT_MAPPING:
        return (json.dumps(value, ensure_ascii=False),), "write the JSON as one quoted string"
    return (), "correct it"


def _unquoted(faults: list[_Fault], value: str) -> tuple[object, ...]:
    wanted = {fault.type for fault in faults}
    if "bool_type" in wanted and value.lower() in _TRUTHS:
        return (_TRUTHS[value.lower()],)
    number = read_plain(value)
    is_literal = any(fault.issue.get("ctx", {}).get("expected") == value for fault in faults)
    return (number,) if type(number) is int and ("int_type" in wanted or is_literal) else ()


def _allowed(fault: _Fault) -> list[str]:
    context: dict[str, Any] = fault.issue.get("ctx", {})
    words = str(context.get("expected") or context.get("expected_tags") or "")
    return words.split("'")[1::2]
