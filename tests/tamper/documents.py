"""Documents inside a run that is changed: read them, and write other values into them."""

import json
from typing import Any

from labctl.frozen import canonical_json
from tests.tamper.mutations import Files


def update(files: Files, path: str, **values: object) -> None:
    """Other values in a document of a run, where it is one."""
    document = parsed(files.get(path, b""))
    if document is not None:
        files[path] = canonical_json(document | values)


def parsed(data: bytes) -> dict[str, Any] | None:
    """A document; None where the bytes are none."""
    try:
        document = json.loads(data)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None
