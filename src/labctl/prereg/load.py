"""Step 1, preregister: from the bytes of one campaign file to a verified model, or to every problem of the file."""

from pathlib import Path
from typing import get_args

from labctl.errors import InvalidPreregistration
from labctl.prereg.any_campaign import CardPreregistration
from labctl.prereg.campaign_file import Attempt, FileT, Loaded, attempt, read_campaign_file, shown_path
from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.designs import with_order
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.kinds import kind_of, other_kind
from labctl.prereg.model import Preregistration
from labctl.prereg.probe_model import ProbePreregistration
from labctl.prereg.rules import host_findings, preregistration_findings, suite_findings
from labctl.prereg.rules.component import component_findings
from labctl.prereg.rules.probe import probe_findings
from labctl.prereg.strict_yaml import read_yaml
from labctl.prereg.suite import Suite
from labctl.prereg.validation import Rules, validate


def try_preregistration(path: Path) -> Attempt[Preregistration]:
    """Read a campaign file of kind `endpoint` and hold it against the rules that need no other file."""
    return _try_yaml(path, Preregistration, preregistration_findings)


def try_component(path: Path) -> Attempt[ComponentPreregistration]:
    """Read a campaign file of kind `component` and hold it against the rules that need no other file."""
    return _try_yaml(path, ComponentPreregistration, component_findings)


def try_probe(path: Path) -> Attempt[ProbePreregistration]:
    """Read a campaign file of kind `probe` and hold it against the rules that need no other file."""
    return _try_yaml(path, ProbePreregistration, probe_findings)


def try_host_profile(path: Path) -> Attempt[HostProfile]:
    """Read a host profile."""
    return _try_yaml(path, HostProfile, host_findings)


def try_suite(path: Path) -> Attempt[Suite]:
    """Read a suite of prompts."""
    return _try_yaml(path, Suite, suite_findings)


def load_preregistration(path: Path) -> Loaded[Preregistration]:
    """Read a campaign file of kind `endpoint` and hold it against the rules that need no other file.

    Raises:
        InvalidPreregistration: with every problem of the file.
    """
    return try_preregistration(path).required()


def load_any_preregistration(path: Path) -> Loaded[Preregistration] | Loaded[CardPreregistration]:
    """Read a campaign file of any kind and hold it against the rules that need no other file.

    Raises:
        InvalidPreregistration: with every problem of the file.
    """
    match kind_of(path):
        case "component":
            return try_component(path).required()
        case "probe":
            return try_probe(path).required()
        case _:
            return load_preregistration(path)


def load_host_profile(path: Path) -> Loaded[HostProfile]:
    """Read a host profile.

    Raises:
        InvalidPreregistration: with every problem of the file.
    """
    return try_host_profile(path).required()


def load_suite(path: Path) -> Loaded[Suite]:
    """Read a suite of prompts.

    Raises:
        InvalidPreregistration: with every problem of the file.
    """
    return try_suite(path).required()


def _try_yaml(path: Path, kind: type[FileT], rules: Rules[FileT]) -> Attempt[FileT]:
    try:
        data = read_campaign_file(path)
    except InvalidPreregistration as error:
        return Attempt(None, error.problems)
    document = read_yaml(data, shown_path(path))
    (wanted,) = get_args(kind.model_fields["kind"].annotation)
    if problem := other_kind(document, wanted):
        return Attempt(None, (problem,))
    document = document._replace(tree=with_order(document.tree)) if wanted == "endpoint" else document
    return attempt(path, data, validate(document, kind, rules))
