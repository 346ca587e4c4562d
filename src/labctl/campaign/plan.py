"""The plan: every command, environment, path and gate that a run would use, in words; nothing is touched."""

from collections.abc import Iterator
from pathlib import Path

from labctl.campaign.orders import planned_paths
from labctl.campaign.roots import Roots
from labctl.packet.environment import base_environment
from labctl.packet.interpreter import interpreter_path
from labctl.packet.machine import machine_key
from labctl.prereg.any_campaign import AnyPreregistration
from labctl.prereg.arms import PLACEHOLDER, arm_argv, arm_binaries, arm_environment
from labctl.prereg.gate_kinds import Gate, gate_id
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.model import Arm, Preregistration
from labctl.prereg.suite import Suite


def describe_plan(preregistration: Preregistration, profile: HostProfile, suite: Suite, roots: Roots) -> Iterator[str]:
    """The plan of a campaign, line by line.

    Args:
        preregistration: the campaign.
        profile: its host profile.
        suite: its prompts.
        roots: where a run would write.
    """
    yield from plan_head(preregistration, roots)
    known = _known_values(preregistration, profile, roots)
    for index, leg in enumerate(preregistration.schedule.order, start=1):
        yield from _leg(preregistration, (index, leg), roots, known | _binaries(preregistration, leg, profile, roots))
        yield ""
    if preregistration.schedule.mirror is not None:
        yield "a sealed coin decides whether this order runs, or its mirror with A and B swapped"
    yield from _workload(preregistration, suite)
    yield from _gates(preregistration)
    yield from plan_tail(preregistration)


def plan_head(said: AnyPreregistration, roots: Roots) -> Iterator[str]:
    """What is asked, and where everything would go."""
    yield f"campaign {said.id} ({said.campaign_class}): {said.title}"
    yield f"question: {said.question}"
    yield ""
    yield from _places(roots)
    yield ""


def plan_tail(said: AnyPreregistration) -> Iterator[str]:
    """Who must approve, and that nothing has happened."""
    yield f"reviews: {said.reviews.required} needed, signatures {said.reviews.signatures}"
    yield "nothing was touched"


def _places(roots: Roots) -> Iterator[str]:
    yield f"marker:   {roots.authorization.markers}/<packet id>.json, created once, never removed"
    yield f"ledger:   {roots.authorization.ledger}"
    yield f"run:      {roots.runs}/<campaign>-<packet>-<random>"
    yield f"analysis: {roots.analyses}/<run>-<analyzer>-<random>"
    yield f"scratch:  {roots.scratch}, emptied after the run"


def _known_values(preregistration: Preregistration, profile: HostProfile, roots: Roots) -> dict[str, str]:
    """The placeholders whose values are known in advance; port, nonce and folders differ from start to start."""
    python = interpreter_path(profile, preregistration.interpreter, roots.repository)
    models = {
        f"{{model:{source.name}}}": str(machine_key(profile.models, source.name, roots.repository))
        for source in preregistration.models
    }
    return {"{python}": str(python), "{host}": profile.network.address, **models}


def _binaries(preregistration: Preregistration, leg: str, profile: HostProfile, roots: Roots) -> dict[str, str]:
    key = arm_binaries(preregistration, Arm.of_leg(leg))
    return {} if key is None else {"{binaries}": str(machine_key(profile.binaries, key, roots.repository))}


def _leg(
    preregistration: Preregistration, place: tuple[int, str], roots: Roots, known: dict[str, str]
) -> Iterator[str]:
    index, leg = place
    arm = Arm.of_leg(leg)
    scratch = planned_paths(Path("data") / "legs" / f"{index:02d}-{leg}", roots.scratch / "<random>" / leg)
    yield f"leg {index}, {leg} ({'control' if arm is Arm.CONTROL else 'candidate'}), into {scratch.leg}"
    yield "  command: " + " ".join(_quoted(_partly_filled(part, known)) for part in arm_argv(preregistration, arm))
    base = base_environment(home=scratch.home, temporary=scratch.temporary)
    for name, value in sorted((base | arm_environment(preregistration, arm)).items()):
        yield f"  environment: {name}={_partly_filled(value, known)}"


def _partly_filled(text: str, known: dict[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: known.get(match[0], match[0]), text)


def _quoted(part: str) -> str:
    return f"'{part}'" if any(character in part for character in " \"'") else part


def _workload(preregistration: Preregistration, suite: Suite) -> Iterator[str]:
    workload = preregistration.workload
    yield (
        f"each start: {len(suite.prompts)} prompts of suite {suite.id}, once, in order, "
        f"{workload.max_tokens} tokens each, {workload.api}"
    )
    oracle = preregistration.oracle
    yield f"oracle: {oracle if isinstance(oracle, str) else oracle.teacher}"


def _gates(preregistration: Preregistration) -> Iterator[str]:
    always = ["identity", "complete_rows"]
    always += ["treatment"] if preregistration.treatment else []
    always += ["decision"] if preregistration.decision else []
    yield f"gates, always: {', '.join(always)}"
    for gate in preregistration.gates:
        yield f"gate {gate_id(gate)}: {_settings(gate) or 'no settings'}"
    if preregistration.schedule.stop_after_first_pair:
        yield "after the first pair the analyzers judge it; unless every gate passes, the run stops there"


def _settings(gate: Gate) -> str:
    document = gate.model_dump(mode="json", exclude={"kind", "id"}, exclude_none=True)
    return ", ".join(f"{key} {value}" for key, value in document.items() if value not in ([], ()))
