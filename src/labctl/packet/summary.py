"""What a packet is, in lines for people: for whoever freezes it and whoever reviews it."""

from collections.abc import Iterator
from typing import assert_never

from labctl.packet.card_summary import card_lines
from labctl.packet.model import EndpointPacket, FrozenGitSource, Packet, endpoint_packet
from labctl.packet.power_lines import power_lines
from labctl.prereg.arms import arm_argv, arm_environment
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.model import Arm, Preregistration
from labctl.prereg.treatment_kinds import ArgumentTreatment, BinariesTreatment, EnvironmentTreatment


def summarize_packet(packet: Packet) -> tuple[str, ...]:
    """Identity, question and everything that is pinned, a line each."""
    said = packet.preregistration
    return (
        f"packet {packet.id}",
        f"  kind {packet.kind}, service {packet.service}, attempt {packet.attempt}, follows {packet.follows or 'none'}",
        f"  campaign {said.id}, class {said.campaign_class}: {said.title}",
        f"  commit {packet.repository.commit}, {packet.repository.files} files, tree {packet.repository.tree_dirhash}",
        f"  preregistration {packet.repository.prereg_path}, sha256 {packet.prereg_yaml_sha256}",
        *power_lines(packet),
        *_pinned(packet),
    )


def summarize_for_review(packet: Packet) -> tuple[str, ...]:
    """What a reviewer is to look at before approving."""
    said = packet.preregistration
    return (
        *summarize_packet(packet),
        f"  author {said.author}",
        f"  question: {said.question}",
        *(_endpoint(endpoint_packet(packet)) if isinstance(said, Preregistration) else card_lines(said)),
        f"  reviews: {said.reviews.required} required, signatures {said.reviews.signatures}",
        f"  cannot review: {', '.join(packet.repository.committers)}, and the author",
    )


def _endpoint(packet: EndpointPacket) -> Iterator[str]:
    said = packet.preregistration
    mirror = "" if said.schedule.mirror is None else " or its mirror, by a sealed coin"
    order = f"{' '.join(packet.order)}{mirror}"
    yield f"  order {order}, {said.workload.max_tokens} tokens a prompt over {said.workload.api}"
    yield from _arms(packet)
    yield from _difference(packet)
    yield f"  gates: {', '.join(gate_id(gate) for gate in said.gates)}"
    if said.decision is not None:
        yield f"  decision: {said.decision.headline}, {said.decision.reported_value}"


def _pinned(packet: Packet) -> Iterator[str]:
    for pinned in packet.files:
        yield f"  {pinned.role}: {pinned.path}, {pinned.bytes} bytes, sha256 {pinned.sha256}"
    for source in packet.sources:
        what = f"commit {source.commit}" if isinstance(source, FrozenGitSource) else f"version {source.version}"
        digest = source.tree_dirhash if isinstance(source, FrozenGitSource) else source.record_sha256
        yield f"  source {source.name}: {what}, {source.files} files, {digest}"
    for model in packet.models:
        yield f"  model {model.name}: {model.files} files, {model.bytes} bytes, manifest {model.manifest_sha256}"
    yield f"  interpreter {packet.interpreter.key}: Python {packet.interpreter.version}"
    yield f"  labctl {packet.tool.version}, files {packet.tool.tree_dirhash}"
    for analyzer in packet.analyzers:
        yield f"  analyzer {analyzer.name}: {analyzer.sha256}"
    if packet.engine_sha256 is not None:
        yield f"  engine vocabulary {packet.engine_sha256}"
    for check in packet.host_checks:
        counts = ", ".join(f"{number} {word}" for word, number in sorted(check.counts.items()))
        yield f"  host check {check.name}: exit {check.exit_status}" + (f", {counts}" if counts else "")


def _arms(packet: EndpointPacket) -> Iterator[str]:
    for arm in sorted({Arm.of_leg(leg) for leg in packet.order}):
        yield f"  arm {arm}: {' '.join(arm_argv(packet.preregistration, arm))}"
        for name, value in sorted(arm_environment(packet.preregistration, arm).items()):
            yield f"    {name}={value}"


def _difference(packet: EndpointPacket) -> Iterator[str]:
    treatment = packet.preregistration.treatment
    if treatment is None:
        yield "  sole difference: none, there is one arm"
        return
    match treatment:
        case ArgumentTreatment():
            name = treatment.argument
        case EnvironmentTreatment():
            name = treatment.environment
        case BinariesTreatment():
            name = f"compiled files {treatment.binaries}"
        case _:
            assert_never(treatment)
    yield f"  sole difference: {name}: A {_shown(treatment.control)}, B {_shown(treatment.candidate)}"


def _shown(value: object) -> str:
    return "absent" if value is None else "given" if value is True else str(value)
