"""Noise records as files: strict JSON, held against the rules of their kind."""

from pathlib import Path

from labctl.errors import InvalidPreregistration, MalformedRecord
from labctl.frozen import strict_json
from labctl.prereg.campaign_file import Attempt, Loaded, attempt, read_campaign_file, shown_path
from labctl.prereg.noise import NoiseRecord, noise_findings
from labctl.prereg.places import no_places
from labctl.prereg.strict_yaml import YamlDocument
from labctl.prereg.validation import validate


def try_noise_record(path: Path) -> Attempt[NoiseRecord]:
    """Read a noise record, strict JSON."""
    file = shown_path(path)
    try:
        data = read_campaign_file(path)
        tree = strict_json(data, f"{file}:1:1")
    except (InvalidPreregistration, MalformedRecord) as error:
        return Attempt(None, error.problems)
    document = YamlDocument(tree, no_places(file), (), frozenset())
    return attempt(path, data, validate(document, NoiseRecord, noise_findings))


def load_noise_record(path: Path) -> Loaded[NoiseRecord]:
    """Read a noise record, strict JSON.

    Raises:
        InvalidPreregistration: with every problem of the file.
    """
    return try_noise_record(path).required()
