"""Say in words what differs between two packets."""

from collections.abc import Iterator
from typing import Any

from labctl.packet.model import Packet

_NAMES = ("id", "role", "name", "kind", "git", "installed")
_DIGEST_ENDS = ("sha256", "dirhash")
_PHRASES = {
    "tool.tree_dirhash": "labctl's own files differ",
    "prereg_yaml_sha256": "the YAML file's bytes differ",
    "engine_sha256": "what the engine is said to call things differs",
    "interpreter.resolved_sha256": "the interpreter's executable differs",
    "interpreter.distributions_sha256": "the packages installed for the interpreter differ",
    "repository.tree_dirhash": "the campaign repository's files differ",
}


def describe_difference(was: Packet, now: Packet) -> tuple[str, ...]:
    """One line for each field that differs; one line that says so where none does."""
    if was.id == now.id:
        return (f"the packets are the same: {was.id}",)
    before, after = dict(_flat("", was.model_dump(mode="json"))), dict(_flat("", now.model_dump(mode="json")))
    fields = [*before, *(field for field in after if field not in before)]
    return tuple(_line(field, before, after) for field in fields if before.get(field) != after.get(field))


def _line(field: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    if field in _PHRASES:
        return _PHRASES[field]
    shown = field.removeprefix("preregistration.")
    if field not in before:
        return f"{shown}: was absent, now {_value(after[field])}"
    if field not in after:
        return f"{shown}: was {_value(before[field])}, now absent"
    if field.endswith(_DIGEST_ENDS):
        return f"{shown}: the content differs ({before[field][:12]}… was, {after[field][:12]}… is)"
    return f"{shown}: was {_value(before[field])}, now {_value(after[field])}"


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (JSON)
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else key, child)
    elif isinstance(value, list) and all(isinstance(child, dict) for child in value):
        for place, child in enumerate(value, 1):
            yield from _flat(f"{prefix}[{_name(child, place)}]", child)
    else:
        yield prefix, value


def _name(child: dict[str, Any], place: int) -> str:
    return next((str(child[key]) for key in _NAMES if child.get(key)), str(place))


def _value(value: Any) -> str:  # noqa: ANN401 (JSON)
    if value is None:
        return "absent"
    return " ".join(str(part) for part in value) if isinstance(value, list) else str(value)
