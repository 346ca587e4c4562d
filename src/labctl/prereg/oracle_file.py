"""Oracles: strict JSON, held against the rules of their kind."""

from pathlib import Path

from labctl.errors import InvalidPreregistration, MalformedRecord
from labctl.frozen import strict_json
from labctl.prereg.campaign_file import Attempt, Loaded, attempt, read_campaign_file, shown_path
from labctl.prereg.places import no_places
from labctl.prereg.rules import oracle_findings
from labctl.prereg.strict_yaml import YamlDocument
from labctl.prereg.suite import Oracle
from labctl.prereg.validation import validate

MAX_ORACLE_BYTES = 64 << 20


def try_oracle(path: Path) -> Attempt[Oracle]:
    """Read an oracle, strict JSON."""
    file = shown_path(path)
    try:
        data = read_campaign_file(path, limit_bytes=MAX_ORACLE_BYTES)
        tree = strict_json(data, f"{file}:1:1")
    except (InvalidPreregistration, MalformedRecord) as error:
        return Attempt(None, error.problems)
    document = YamlDocument(tree, no_places(file), (), frozenset())
    return attempt(path, data, validate(document, Oracle, oracle_findings))


def load_oracle(path: Path) -> Loaded[Oracle]:
    """Read an oracle, strict JSON.

    Raises:
        InvalidPreregistration: with every problem of the file.
    """
    return try_oracle(path).required()
