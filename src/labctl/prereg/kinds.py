"""Which kind of campaign file a YAML file says it is."""

from pathlib import Path

from labctl.codes import Code
from labctl.errors import InvalidPreregistration, Problem
from labctl.prereg.campaign_file import read_campaign_file, shown_path
from labctl.prereg.finding import Finding, before_others
from labctl.prereg.strict_yaml import YamlDocument, read_yaml
from labctl.prereg.words import nearest, shown

KINDS = ("endpoint", "component", "probe", "suite", "host")
_NAMES = {
    "endpoint": "a campaign (kind `endpoint`)",
    "component": "a component campaign (kind `component`)",
    "probe": "a probe (kind `probe`)",
    "suite": "a suite (kind `suite`)",
    "host": "a host profile (kind `host`)",
}


def kind_of(path: Path) -> str:
    """The kind that a YAML file says it is, or nearly says.

    Raises:
        InvalidPreregistration: it says none, or none that this version knows.
    """
    document = read_yaml(read_campaign_file(path), shown_path(path))
    kind = document.tree.get("kind") if isinstance(document.tree, dict) else None
    if isinstance(kind, str) and (meant := nearest(kind, KINDS)):
        return meant
    problems = list(document.problems)
    # A file that is not well-formed may be of any kind: only what it says outright is held against it.
    if not document.faulty & {(), ("kind",)} and (kind is not None or not problems):
        problems.append(_kind_finding(document.tree).at(document.places))
    problems[-1] = before_others(problems[-1])
    raise InvalidPreregistration(problems)


def other_kind(document: YamlDocument, wanted: str) -> Problem | None:
    """What is wrong where a file of one kind is named and a file of another kind is meant."""
    kind = document.tree.get("kind") if isinstance(document.tree, dict) else None
    if kind == wanted or kind not in KINDS:
        return None
    do = f"name {_NAMES[wanted]}"
    return Finding(("kind",), _NAMES[wanted], _NAMES[kind], do, Code.WRONG_VALUE).at(document.places)


def _kind_finding(tree: object) -> Finding:
    if not isinstance(tree, dict):
        return Finding((), "a mapping", shown(tree), "write a campaign file", Code.WRONG_TYPE)
    expected = f"one of {', '.join(KINDS)}"
    if "kind" not in tree:
        return Finding((), f"the key `kind` with {expected}", "no such key", "add it", Code.MISSING_KEY)
    kind = tree["kind"]
    return Finding(("kind",), expected, shown(kind), "correct it", Code.WRONG_VALUE)
