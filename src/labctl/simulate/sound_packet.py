"""The packet of a simulated campaign: a record with every gate that a record needs, and one rule set for its timing."""

from labctl.engines.reference import VOCABULARY
from labctl.frozen import canonical_json
from labctl.packet.environment import base_environment
from labctl.packet.model import EndpointPacket
from labctl.prereg.suite import Suite
from labctl.simulate.cells import PROMPTS
from labctl.simulate.rule_sets import ALPHA, PLANNED_EFFECT_PERCENT, RuleSet, decision_of_rules, gates_of_rules

NO_DIGEST = "0" * 64
TREATMENT = "LABCTL_SIMULATED_TREATMENT"
COMMAND = [
    *("{python}", "-m", "labctl.servers.reference", "--host", "{host}", "--port", "{port}"),
    *("--served-model-name", "labctl-{nonce}"),
]
PROOF = {"log": "treatment is on", "example": "treatment is on", "control": "absent", "candidate": "present"}
GATES: tuple[dict[str, object], ...] = (
    {"kind": "exact_tokens"},
    {"kind": "cross_leg_exact"},
    {"kind": "cold", "cached_tokens": 0, "requests_per_start": PROMPTS},
    {"kind": "accounting"},
    {"kind": "clean_log", "unknown_environment": "fail"},
)


def sound_suite() -> Suite:
    """Thirteen prompts."""
    prompts = [{"id": f"p{number:02d}", "text": f"prompt {number}"} for number in range(1, PROMPTS + 1)]
    document = {"labctl": 1, "kind": "suite", "id": "simulated", "prompts": prompts}
    return Suite.from_json(canonical_json(document), "suite of a simulation")


def sound_packet(rules: RuleSet, order: tuple[str, ...]) -> EndpointPacket:
    """The packet of a campaign with these rules and this order."""
    document = {
        "schema": "labctl/packet/1",
        "kind": "real",
        "service": "registered",
        "attempt": 1,
        "follows": None,
        "preregistration": _preregistration(rules, order),
        "prereg_yaml_sha256": NO_DIGEST,
        "repository": _repository(),
        "files": [],
        "sources": [],
        "models": [],
        "interpreter": _interpreter(),
        "tool": {"version": "0", "tree_dirhash": NO_DIGEST},
        "analyzers": [{"name": "labctl", "sha256": NO_DIGEST}],
        "host": _host(),
        "engine_sha256": NO_DIGEST,
        "host_checks": [],
        "environment_allowed": sorted([*base_environment(home="", temporary=""), TREATMENT]),
    }
    return EndpointPacket.from_json(canonical_json(document), "packet of a simulation")


def _preregistration(rules: RuleSet, order: tuple[str, ...]) -> dict[str, object]:
    return {
        "labctl": 1,
        "kind": "endpoint",
        "id": "simulated",
        "title": "A simulated record",
        "author": "Nobody <nobody@example.org>",
        "question": "How often does this rule set pass?",
        "class": "record",
        "host": "hosts/simulated.yaml",
        "interpreter": "embedded",
        "service": {"engine": VOCABULARY.engine, "command": COMMAND, "ready": {"timeout_s": 60}},
        "treatment": {"environment": TREATMENT, "control": None, "candidate": "1", "proof": PROOF},
        "workload": {"suite": "s.yaml", "max_tokens": 100, "temperature": 0, "seed": 1, "api": "completions"},
        "schedule": {"order": list(order)},
        "oracle": "first_control",
        "gates": [*GATES, *gates_of_rules(rules)],
        "decision": decision_of_rules(rules),
        "power": {
            "noise_record": "noise/simulated.json",
            "planned_effect_percent": PLANNED_EFFECT_PERCENT,
            "alpha": ALPHA,
            "power": "0.8",
        },
        "reviews": {"required": 0, "signatures": "none"},
        "authorizes": ["endpoint_run"],
    }


def _repository() -> dict[str, object]:
    where = "campaigns/simulated/campaign.yaml"
    return {"commit": "0" * 40, "tree_dirhash": NO_DIGEST, "files": 1, "prereg_path": where, "committers": []}


def _interpreter() -> dict[str, object]:
    digests = {"resolved_sha256": NO_DIGEST, "distributions_sha256": NO_DIGEST}
    return {"key": "embedded", "version": "3.11.0", "pth_files": [], **digests}


def _host() -> dict[str, object]:
    roots = {name: f"/simulated/{name}" for name in ("authorization", "runs", "analyses", "scratch")}
    return {
        "labctl": 1,
        "kind": "host",
        "id": "simulated",
        "roots": roots,
        "storage": {"allowed": ["ext4"]},
        "network": {"address": "127.0.0.1", "port": 0},
        "idle": {"window_s": 0, "max_cpu_percent": 100},
        "interpreters": {"embedded": "self"},
    }
