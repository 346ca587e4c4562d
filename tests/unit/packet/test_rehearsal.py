from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.durable import make_folders, write_once
from labctl.errors import FreezeRefused
from labctl.packet.embedded import COMMAND, SPECULATION, embedded_host, embedded_preregistration
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.packet.machine import packet_folder, rehearsal_authorization_root
from labctl.packet.model import Packet
from labctl.packet.opening import open_packet
from labctl.packet.rehearsal import RehearsalTarget, freeze_rehearsal
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.model import Preregistration
from labctl.prereg.treatment_kinds import ArgumentTreatment
from tests.fakes.lab_repository import LabRepository
from tests.fakes.packets import host_document, merged, preregistration_document

EMBEDDED, REGISTERED = RehearsalTarget.EMBEDDED, RehearsalTarget.REGISTERED


@pytest.fixture
def lab(tmp_path: Path) -> LabRepository:
    return LabRepository.create(tmp_path / "lab")


def rehearse(lab: LabRepository, service: RehearsalTarget = EMBEDDED) -> Packet:
    return freeze_rehearsal(FreezeRequest(lab.campaign), service)


def said(**changes: object) -> Preregistration:
    return Preregistration.model_validate(merged(preregistration_document(), changes), strict=False)


def test_a_dirty_tree_can_be_rehearsed_as_it_lies(lab: LabRepository) -> None:
    lab.edit_campaign("Does prompt", "Would prompt")
    packet = rehearse(lab)
    assert (packet.kind, packet.service) == ("rehearsal", "embedded")
    assert packet.preregistration.question.startswith("Would prompt")
    assert packet.repository.commit == lab.head
    folder = packet_folder(packet, lab.top)
    assert folder.root.is_relative_to(lab.top / ".labctl/runs/rehearsals/authorization")
    assert open_packet(folder) == packet
    assert folder.prereg.read_bytes() == lab.campaign.read_bytes()
    assert not (lab.top / ".labctl/authorization").exists()


def test_a_file_that_git_does_not_track_must_at_least_be_added(lab: LabRepository) -> None:
    new = lab.write("campaigns/new/campaign.yaml", lab.campaign.read_text())
    with pytest.raises(FreezeRefused, match=r"git add campaigns/new/campaign\.yaml`; a rehearsal needs no commit"):
        freeze_rehearsal(FreezeRequest(new), EMBEDDED)
    lab.git("add", str(new))
    packet = freeze_rehearsal(FreezeRequest(new), EMBEDDED)
    assert packet.repository.prereg_path == "campaigns/new/campaign.yaml"


def test_the_registered_service_is_rehearsed_as_registered(lab: LabRepository) -> None:
    packet = rehearse(lab, REGISTERED)
    real = freeze_packet(FreezeRequest(lab.campaign))
    assert (packet.kind, packet.service) == ("rehearsal", "registered")
    assert packet.preregistration == real.preregistration
    assert packet.id != real.id


def test_rehearsals_follow_each_other_without_being_named(lab: LabRepository) -> None:
    first = rehearse(lab)
    assert rehearse(lab) == first
    root = rehearsal_authorization_root(first.host, lab.top)
    make_folders(root.markers)
    write_once(root.marker(first.id), b"")
    second = rehearse(lab)
    assert (second.attempt, second.follows) == (2, first.id)
    assert freeze_packet(FreezeRequest(lab.campaign)).attempt == 1


def test_a_failing_host_check_refuses_a_rehearsal_too(lab: LabRepository) -> None:
    lab.edit_campaign("authorizes:", "host_checks: [{name: never, command: ['false']}]\nauthorizes:")
    with pytest.raises(FreezeRefused) as refused:
        rehearse(lab)
    assert refused.value.codes == (Code.HOST_CHECK_FAILED,)


def test_a_campaign_on_a_real_engine_keeps_its_shape_on_the_embedded_one() -> None:
    registered = said(
        sources=[{"installed": "vllm", "version": "0.32.0"}],
        models=[{"name": "target", "manifest": "models/target.sha256"}],
        service={"engine": "vllm", "environment": {"VLLM_X": "1"}},
        power={"noise_record": "n.json", "planned_effect_percent": "2", "alpha": "0.05", "power": "0.8"},
        gates=[
            {"kind": "clean_log", "unknown_environment": "fail", "require": [{"pattern": "graph", "example": "graph"}]},
            {"kind": "control_near", "reference": "92.1", "within_percent": "2"},
        ],
        decision={"record_to_beat": "92.1", "floor_over_record_percent": "0.25"},
    )
    derived = embedded_preregistration(registered, "mine")
    assert (derived.interpreter, derived.sources, derived.models, derived.power) == ("mine", (), (), None)
    assert (derived.service.engine, derived.service.command) == ("reference", COMMAND)
    assert (derived.service.environment, derived.oracle) == ({}, "first_control")
    assert [gate.model_dump()["require"] for gate in derived.gates] == [()]
    assert derived.decision is not None
    assert (derived.decision.record_to_beat, derived.decision.floor_over_record_percent) == (None, None)
    assert (derived.schedule, derived.workload) == (registered.schedule, registered.workload)


@pytest.mark.parametrize(
    ("argument", "candidate", "is_kept"),
    [
        ("--speculative-config", '{"method":"ngram","num_speculative_tokens":2}', True),
        ("--speculative-config", '{"method":"eagle","model":"m"}', False),
        ("--speculative-config", "not json", False),
        ("--enforce-eager", True, False),
    ],
)
def test_a_treatment_that_the_embedded_endpoint_cannot_serve_is_replaced(
    argument: str, candidate: str | bool, is_kept: bool
) -> None:
    registered = said(treatment={"argument": argument, "candidate": candidate})
    treatment = embedded_preregistration(registered, "mine").treatment
    assert isinstance(treatment, ArgumentTreatment)
    assert (treatment == registered.treatment) is is_kept
    assert (treatment.candidate == SPECULATION["candidate"]) is not is_kept


def test_an_environment_treatment_is_replaced_and_a_single_arm_stays_single() -> None:
    proof = {"counter": "drafts", "control": "absent_or_zero", "candidate": "positive"}
    document = preregistration_document()
    document["treatment"] = {"environment": "X", "control": None, "candidate": "1", "proof": proof}
    derived = embedded_preregistration(Preregistration.model_validate(document, strict=False), "mine")
    assert isinstance(derived.treatment, ArgumentTreatment)
    assert embedded_preregistration(said(treatment=None, decision=None), "mine").treatment is None


def test_a_campaign_whose_only_gate_is_about_the_machine_keeps_a_gate() -> None:
    document = preregistration_document()
    document["gates"] = [{"kind": "control_near", "reference": "92.1", "within_percent": "2"}]
    derived = embedded_preregistration(Preregistration.model_validate(document, strict=False), "mine")
    assert [gate.kind for gate in derived.gates] == ["cross_leg_exact"]


def test_a_host_profile_without_labctls_interpreter_gets_one() -> None:
    host = HostProfile.model_validate(host_document() | {"interpreters": {"serving": "/opt/python"}}, strict=False)
    derived, key = embedded_host(host)
    assert (key, derived.interpreters) == ("embedded", {"serving": "/opt/python", "embedded": "self"})
    assert embedded_host(derived) == (derived, "embedded")
