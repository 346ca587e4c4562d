"""Derive the preregistration of a rehearsal in which the embedded endpoint stands in for the registered service."""

import json
from typing import Any

from labctl.frozen import canonical_json
from labctl.packet.interpreter import THIS_INTERPRETER
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.model import Preregistration
from labctl.prereg.treatment_kinds import ArgumentTreatment, Treatment

SPECULATION_OPTION = "--speculative-config"
COMMAND = (
    *("{python}", "-P", "-m", "labctl.servers.reference"),
    *("--host", "{host}", "--port", "{port}", "--served-model-name", "labctl-{nonce}"),
)
SPECULATION = {
    "argument": SPECULATION_OPTION,
    "control": None,
    "candidate": '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}',
    "proof": {"counter": "drafts", "control": "absent_or_zero", "candidate": "positive"},
}
# Gates whose figures belong to the real machine: a stand-in can neither meet nor miss them.
_MACHINE_GATES = (
    *("control_near", "roofline", "kv_capacity", "resident_memory", "acceptance", "survival_shape"),
    *("long_then_next", "rollover"),
)


def embedded_host(host: HostProfile) -> tuple[HostProfile, str]:
    """The host profile with a key for labctl's own interpreter, and that key."""
    key = next((key for key, path in sorted(host.interpreters.items()) if path == THIS_INTERPRETER), None)
    if key is not None:
        return host, key
    document = host.model_dump(mode="json")
    document["interpreters"]["embedded"] = THIS_INTERPRETER
    return HostProfile.from_json(canonical_json(document), "host profile of a rehearsal"), "embedded"


def embedded_preregistration(registered: Preregistration, interpreter: str) -> Preregistration:
    """The same campaign on the embedded endpoint: order, prompts and gates stay, what names the real service goes."""
    document = registered.model_dump(mode="json")
    document |= {"interpreter": interpreter, "sources": [], "models": [], "oracle": "first_control", "power": None}
    document["service"] |= {"engine": "reference", "command": list(COMMAND), "environment": {}}
    if registered.treatment is not None and not _is_understood(registered.treatment):
        document["treatment"] = SPECULATION
    document["gates"] = [_gate(gate) for gate in document["gates"] if gate["kind"] not in _MACHINE_GATES]
    document["gates"] = document["gates"] or [{"kind": "cross_leg_exact"}]
    if document["decision"] is not None:
        document["decision"] |= {"record_to_beat": None, "floor_over_record_percent": None}
    return Preregistration.from_json(canonical_json(document), "preregistration of a rehearsal")


def _is_understood(treatment: Treatment) -> bool:
    """Whether the embedded endpoint serves both arms of the registered treatment."""
    if not isinstance(treatment, ArgumentTreatment) or treatment.argument != SPECULATION_OPTION:
        return False
    return all(_is_ngram(str(value)) for value in (treatment.control, treatment.candidate) if value is not None)


def _is_ngram(value: str) -> bool:
    try:
        configuration = json.loads(value)
    except ValueError:
        return False
    return isinstance(configuration, dict) and configuration.get("method") == "ngram"


def _gate(gate: dict[str, Any]) -> dict[str, Any]:
    if gate["kind"] != "clean_log":
        return gate
    return {key: value for key, value in gate.items() if key != "good_log"} | {"require": []}
