"""Which kind of campaign file a YAML file says it is."""

from pathlib import Path

from labctl.codes import Code
from labctl.errors import InvalidPreregistration
from labctl.prereg.campaign_file import read_campaign_file, shown_path
from labctl.prereg.finding import Finding
from labctl.prereg.strict_yaml import read_yaml
from labctl.prereg.words import nearest, shown

KINDS = ("endpoint", "suite", "host")
LATER_KINDS = ("component", "probe")


def kind_of(path: Path) -> str:
    """The kind that a YAML file says it is.

    Raises:
        InvalidPreregistration: it says none, or none that this version knows.
    """
    document = read_yaml(read_campaign_file(path), shown_path(path))
    kind = document.tree.get("kind") if isinstance(document.tree, dict) else None
    if isinstance(kind, str) and kind in KINDS:
        return kind
    problems = list(document.problems)
    if not document.faulty & {(), ("kind",)}:
        problems.append(_kind_finding(document.tree).at(document.places))
    raise InvalidPreregistration(problems)


def _kind_finding(tree: object) -> Finding:
    if not isinstance(tree, dict):
        return Finding((), "a mapping", shown(tree), "write a campaign file", Code.WRONG_TYPE)
    expected = f"one of {', '.join(KINDS)}"
    if "kind" not in tree:
        return Finding((), f"the key `kind` with {expected}", "no such key", "add it", Code.MISSING_KEY)
    kind = tree["kind"]
    if kind in LATER_KINDS:
        got = f"{kind}, which this version does not know"
        return Finding(("kind",), expected, got, "use a version that runs such campaigns", Code.WRONG_VALUE)
    guess = nearest(kind, KINDS) if isinstance(kind, str) else None
    do = f"did you mean `{guess}`?" if guess else "correct it"
    return Finding(("kind",), expected, shown(kind), do, Code.WRONG_VALUE)
