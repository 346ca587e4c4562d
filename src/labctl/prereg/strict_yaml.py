"""The strict YAML reader: from bytes to a plain tree with the place of each key and value, and every complaint at once.

It walks the parser's events, so that nothing is built before it is known to be allowed, and never asks PyYAML what a
scalar means.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import yaml

from labctl.codes import Code
from labctl.errors import Problem
from labctl.prereg.places import START, Places, Spot, TreePath
from labctl.prereg.scalars import MAX_INT_DIGITS, Reading, read_plain
from labctl.prereg.source_text import guessed_lines, hidden_character, read_text
from labctl.prereg.yaml_syntax import describe_syntax

MAX_DEPTH = 16
MAX_NODES = 20_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Tree = dict[str, Any] | list[Any] | str | int | float | bool | None


class YamlDocument(NamedTuple):
    """What a file says, where it says it, and what is wrong with how it says it.

    `tree` is None where nothing could be read; `faulty` are the paths whose value is only a guess.
    """

    tree: Tree
    places: Places
    problems: tuple[Problem, ...]
    faulty: frozenset[TreePath]


def read_yaml(data: bytes, file: str) -> YamlDocument:
    """Read one document; problems are in the result, so that a caller can add its own."""
    text, problems = read_text(data, file)
    notes = _Notes(file, problems)
    if text is None:
        notes.faulty.add(())
    elif problems:
        notes.guessed_lines = guessed_lines(data.decode())
    tree = None if text is None else _Reader(notes).read(text)
    return YamlDocument(tree, Places(file, notes.keys, notes.values), tuple(notes.problems), frozenset(notes.faulty))


class _Stopped(Exception):
    """Reading further makes no sense."""


class _Notes:
    """Where things stand in the file, and what is wrong with it."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems
        self.keys: dict[TreePath, Spot] = {}
        self.values: dict[TreePath, Spot] = {}
        self.faulty: set[TreePath] = set()
        self.guessed_lines: frozenset[int] = frozenset()
        self.anchors: set[str] = set()

    def complain(self, code: Code, spot: Spot, expected: str, got: str, do: str) -> None:
        self.problems.append(Problem(code, f"{self.file}:{spot.line}:{spot.column}", expected, got, do))

    def syntax(self, error: yaml.MarkedYAMLError) -> None:
        spot = _spot_of(error.problem_mark or error.context_mark)
        self.faulty.add(())
        if "nesting depth" in f"{error.problem} {error.context}":  # libyaml scans ahead of its events, up to a bound
            self.complain(Code.TOO_LARGE, spot, f"at most {MAX_DEPTH} levels", "deeper nesting", "flatten it")
        else:
            self.complain(Code.YAML_SYNTAX, spot, *describe_syntax(error))

    def stop(self, code: Code, event: yaml.Event, words: tuple[str, str, str]) -> NoReturn:
        self.complain(code, _spot(event), *words)
        self.faulty.add(())
        raise _Stopped

    def features(self, event: yaml.Event, path: TreePath) -> None:
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        found = [f"the tag {tag}"] if tag is not None else []
        if self.is_known_alias(event):
            self.faulty.add(path)
        elif isinstance(event, yaml.AliasEvent):
            found.append(f"the alias *{anchor}")
        elif anchor is not None:
            self.anchors.add(anchor)
            found.append(f"the anchor &{anchor}")
        for feature in found:
            self.faulty.add(path)
            self.complain(Code.YAML_FEATURE, _spot(event), "plain YAML", feature, "write the value out")

    def is_known_alias(self, event: yaml.Event) -> bool:
        """Whether an event stands for an anchor, of which there is a complaint already: both are one fault."""
        return isinstance(event, yaml.AliasEvent) and event.anchor in self.anchors

    def merge(self, key: yaml.Event, value: yaml.Event) -> None:
        if not self.is_known_alias(value):
            self.complain(Code.YAML_FEATURE, _spot(key), "plain YAML", "the merge key <<", "write the keys out")


class _Reader:
    """Builds the tree from the parser's events."""

    def __init__(self, notes: _Notes) -> None:
        self.notes = notes
        self.nodes = 0

    def read(self, text: str) -> Tree:
        events = yaml.parse(text, Loader=_LOADER)
        tree: Tree = None
        try:
            next(events)  # the start of the stream
            tree = self.document(next(events), events)
            self.end(next(events))
        except _Stopped:
            pass
        except yaml.MarkedYAMLError as error:
            self.notes.syntax(error)
        return tree

    def document(self, event: yaml.Event, events: Iterator[yaml.Event]) -> Tree:
        if not isinstance(event, yaml.DocumentStartEvent):
            self.notes.stop(Code.YAML_SYNTAX, event, ("a document", "an empty file", "write the file"))
        if event.version is not None or event.tags:
            self.notes.complain(Code.YAML_FEATURE, _spot(event), "no directive", "a directive", "remove the line")
        tree = self.node(next(events), events, ())
        next(events)  # the end of the document
        return tree

    def end(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self.notes.complain(
                Code.YAML_FEATURE, _spot(event), "one document", "a second one", "write a file for each"
            )

    def node(self, event: yaml.Event, events: Iterator[yaml.Event], path: TreePath) -> Tree:
        self.count(event, path)
        self.notes.values[path] = _spot(event)
        self.notes.features(event, path)
        match event:
            case yaml.MappingStartEvent():
                return self.mapping(events, path)
            case yaml.SequenceStartEvent():
                return self.sequence(events, path)
            case yaml.ScalarEvent():
                return self.scalar(event, path)
            case _:
                return None  # an alias, of which `features` complained

    def count(self, event: yaml.Event, path: TreePath) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.notes.stop(Code.TOO_LARGE, event, (f"at most {MAX_NODES} nodes", "more", "split the file"))
        if len(path) >= MAX_DEPTH and not isinstance(event, yaml.ScalarEvent):
            self.notes.stop(Code.TOO_LARGE, event, (f"at most {MAX_DEPTH} levels", "deeper nesting", "flatten it"))

    def mapping(self, events: Iterator[yaml.Event], path: TreePath) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            key = self.key(event, path)
            repeated = key in tree
            if repeated:
                first = self.notes.keys[(*path, key)]
                got = f"`{key}` again, first in line {first.line}"
                self.notes.complain(Code.DUPLICATE_KEY, _spot(event), "each key once", got, "keep one of them")
                self.notes.faulty.add((*path, key))
            else:
                self.notes.keys[(*path, key)] = _spot(event)
            value_event = next(events)
            if _is_merge(event):
                self.notes.merge(event, value_event)
            value = self.node(value_event, events, (*path, key))
            if not repeated:
                tree[key] = value
        return tree

    def key(self, event: yaml.Event, path: TreePath) -> str:
        self.count(event, path)
        if not isinstance(event, yaml.ScalarEvent):
            self.notes.stop(
                Code.YAML_FEATURE, event, ("a text key", "a key of another kind", "write a word as the key")
            )
        self.notes.features(event, path)
        text = str(event.value)
        if _is_merge(event):
            self.notes.faulty.add(path)
        elif hidden := hidden_character(text):
            self.notes.faulty.add(path)
            self.notes.complain(
                Code.NOT_TEXT, _spot(event), "visible characters", f"the escape of {hidden}", "remove it"
            )
        elif _is_plain(event) and not isinstance(read_plain(text), str):
            self.notes.faulty.add((*path, text))
            got = f"the plain key {text}" if text else "an empty key"
            self.notes.complain(Code.AMBIGUOUS_SCALAR, _spot(event), "a text key", got, f'quote it as "{text}"')
        return text

    def sequence(self, events: Iterator[yaml.Event], path: TreePath) -> list[Any]:
        tree: list[Any] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            tree.append(self.node(event, events, (*path, len(tree))))
        return tree

    def scalar(self, event: yaml.ScalarEvent, path: TreePath) -> Tree:
        text = str(event.value)
        if hidden := hidden_character(text):
            self.notes.faulty.add(path)
            self.notes.complain(
                Code.NOT_TEXT, _spot(event), "visible characters", f"the escape of {hidden}", "remove it"
            )
            return _HIDDEN_VALUE
        if _spot(event).line in self.notes.guessed_lines:
            self.notes.faulty.add(path)
            return text
        if not _is_plain(event):
            return text
        value = read_plain(text)
        if not isinstance(value, Reading):
            return value
        self.notes.faulty.add(path)
        if value is Reading.TOO_LARGE:
            limit = f"a number of at most {MAX_INT_DIGITS} digits"
            self.notes.complain(
                Code.TOO_LARGE, _spot(event), limit, f"{len(text)} characters", "quote it if it is text"
            )
        else:
            self.notes.complain(Code.AMBIGUOUS_SCALAR, _spot(event), "one meaning", _plain(text), _clearer(text))
        return text


_HIDDEN_VALUE = "?"


def _spot(event: yaml.Event) -> Spot:
    return _spot_of(event.start_mark)


def _spot_of(mark: Any) -> Spot:  # noqa: ANN401 (two unrelated classes, of the two parsers)
    return Spot(mark.line + 1, mark.column + 1) if mark else START


def _is_plain(event: yaml.ScalarEvent) -> bool:
    return not event.style  # None from PyYAML's own parser, "" from libyaml


def _is_merge(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and _is_plain(event) and event.value == "<<"


def _plain(text: str) -> str:
    return f"the plain scalar {text}" if text else "an empty value"


def _clearer(text: str) -> str:
    match text.lower():
        case "" | "~" | "null":
            return "write null, or the value"
        case "true" | "yes" | "on" | "y":
            return f'write true, or quote it as "{text}"'
        case "false" | "no" | "off" | "n":
            return f'write false, or quote it as "{text}"'
        case _:
            return f'quote it as "{text}"'
