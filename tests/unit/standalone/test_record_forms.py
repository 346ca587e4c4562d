"""The forms that the standalone analyzer holds records against are those of labctl's own models."""

import re
from typing import Any

import pytest

from labctl.frozen import FrozenModel
from labctl.prereg.suite import Oracle
from labctl.records.leg import LegExit, Postflight, ProcessRecord, Telemetry
from labctl.records.marker import Marker, PreflightPassed
from labctl.records.order import LegStarted, WorkOrder
from labctl.records.run import HostIdentity, JournalEntry, Outcome, PhaseAnswer
from labctl.records.wire import Connected, ConnectStarted, Read, RowClosed, RowOpened, Sent
from labctl.standalone.record_forms import FORMS, require_form
from labctl.standalone.sealed_files import Broken

MODELS: dict[str, type[FrozenModel]] = {
    "marker.copy.json": Marker,
    "identity.json": HostIdentity,
    "preflight.json": PreflightPassed,
    "oracle.json": Oracle,
    "order.json": WorkOrder,
    "LEG_STARTED.json": LegStarted,
    "process.json": ProcessRecord,
    "postflight.json": Postflight,
    "exit.json": LegExit,
    "telemetry.jsonl": Telemetry,
    "journal.jsonl": JournalEntry,
    "outcome.json": Outcome,
    "phase": PhaseAnswer,
    "opened": RowOpened,
    "connect_started": ConnectStarted,
    "connected": Connected,
    "sent": Sent,
    "read": Read,
    "closed": RowClosed,
}
DEFERRED = {"engine"}  # compared as a whole with the packet's copy
PLAIN = {str: "string", int: "integer", bool: "boolean"}


def test_every_form_has_a_model() -> None:
    assert MODELS.keys() == FORMS.keys()


@pytest.mark.parametrize("name", MODELS)
def test_a_form_says_what_its_model_says(name: str) -> None:
    schema = MODELS[name].model_json_schema(mode="serialization")
    assert list(faults(FORMS[name], schema, schema.get("$defs", {}), name)) == []


def faults(form: object, schema: dict[str, Any], known: dict[str, Any], at: str) -> list[str]:
    """Where a form and a JSON schema differ in keys, kinds of value, choices or patterns."""
    if "$ref" in schema:
        schema = known[schema["$ref"].rpartition("/")[2]]
    if isinstance(form, dict) and "properties" in schema:
        return of_mapping(form, schema, known, at)
    if isinstance(form, list):
        same = schema.get("type") == "array"
        return faults(form[0], schema["items"], known, f"{at}[]") if same else [f"{at}: {schema}"]
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(form, tuple) and choices:
        pairs = zip(form, choices, strict=True)
        return [fault for one, other in pairs for fault in faults(one, other, known, at)]
    return [] if fits(form, schema) else [f"{at}: {form} is not {schema}"]


def of_mapping(form: dict[str, Any], schema: dict[str, Any], known: dict[str, Any], at: str) -> list[str]:
    properties = schema["properties"]
    required = {key for key in form if not key.endswith("?")}
    found = [f"{at}: {key}" for key in {key.removesuffix("?") for key in form} ^ properties.keys()]
    optional = {key for key in properties if properties[key].get("default", 1) in (None, [])} - required
    found += [f"{at}.{key} may be absent" for key in (properties.keys() - required) ^ optional]
    for key in properties.keys() & required - DEFERRED:
        found += faults(form[key], properties[key], known, f"{at}.{key}")
    return found


def fits(form: object, schema: dict[str, Any]) -> bool:
    kind, pattern = schema.get("type"), schema.get("pattern")
    match form:
        case None:
            same = kind == "null"
        case dict():
            same = kind == "object" and list(form) == ["*"]
        case re.Pattern():
            same = kind == "string" and pattern in (None, f"^{form.pattern}$", f"^({form.pattern})$")
        case range():
            same = kind == "integer" and form.start == schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        case tuple():
            same = set(form) == set(schema.get("enum", ()))
        case type():
            same = kind == PLAIN[form]
        case _:
            same = schema.get("const") == form
    return same


@pytest.mark.parametrize(
    "changed",
    [{"leg": None}, {"leg": "-B2"}, {"rows_completed": True}, {"rows_completed": 2.0}, {"cause": "else"},
     {"problems": "none"}, {"problems": [1]}, {"more": 1}, {"schema": "labctl/leg-exit/2"}],
)  # fmt: skip
def test_what_is_not_of_its_form_is_refused_with_its_place(changed: dict[str, object]) -> None:
    record = {"schema": "labctl/leg-exit/1", "leg": "B2", "cause": "completed", "problems": [], "rows_completed": 2}
    record |= {"wall_ns": 1, "mono_ns": 1}
    assert require_form("exit.json", record, "data/x") == record
    with pytest.raises(Broken, match=rf"data/x\.{next(iter(changed))}.*RECORD_FORM"):
        require_form("exit.json", record | changed, "data/x")
    with pytest.raises(Broken, match="nothing"):
        require_form("exit.json", {key: value for key, value in record.items() if key != "leg"}, "data/x")
