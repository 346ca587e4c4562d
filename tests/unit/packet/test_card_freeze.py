"""Components and probes as packets: what is pinned, what is not there, and what a reviewer is told."""

import sys
from pathlib import Path

import pytest
import yaml

from labctl.codes import Code
from labctl.errors import FreezeRefused
from labctl.packet.card_contents import COMPONENT_FOLDER, card_subject, subject_of
from labctl.packet.contents import EndpointSubject
from labctl.packet.exported import exported_path, file_role, is_exported, module_role
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.packet.ground import locate_campaign
from labctl.packet.machine import packet_folder
from labctl.packet.model import Packet, endpoint_packet
from labctl.packet.rehearsal import RehearsalTarget, freeze_rehearsal
from labctl.packet.summary import summarize_for_review
from labctl.prereg.any_campaign import order_for, registered_order, schedule_of
from labctl.prereg.card_files import LoadedCardCampaign
from labctl.prereg.environment import RANK_VARIABLES, SELECTING_VARIABLES
from tests.fakes.campaign_repository import make_repository
from tests.fakes.card_repository import CardRepository, make_card_repository, make_probe_repository
from tests.fakes.packets import make_packet


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> CardRepository:
    repository = make_card_repository(tmp_path_factory.mktemp("cards"), cards=2)
    repository.say(worker={"environment": {"OMP_NUM_THREADS": "1"}})
    return repository


@pytest.fixture(scope="module")
def component(cards: CardRepository) -> Packet:
    return freeze_packet(FreezeRequest(cards.campaign))


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Packet:
    repository = make_probe_repository(tmp_path_factory.mktemp("probe"), ranks=2)
    return freeze_packet(FreezeRequest(repository.campaign))


def test_a_component_pins_its_worker_and_all_of_labctls_worker_side(component: Packet) -> None:
    roles = {pinned.role: pinned.path for pinned in component.files}
    modules = {module_role(path.name): f"labctl/component/{path.name}" for path in COMPONENT_FOLDER.glob("*.py")}
    assert roles == modules | {
        "host.yaml": "campaigns/hosts/test-host.yaml",
        "worker.py": "campaigns/workers/scaled_rows.py",
    }
    assert (component.engine_sha256, component.models, component.planned_power) == (None, (), None)
    assert component.order == ("card0", "card1")
    assert component.service == "registered"


def test_a_worker_may_be_told_its_card_and_a_rank_its_place(component: Packet, probe: Packet) -> None:
    assert set(SELECTING_VARIABLES) <= set(component.environment_allowed)
    assert not set(RANK_VARIABLES) & set(component.environment_allowed)
    assert {*SELECTING_VARIABLES, *RANK_VARIABLES, "GLOO_SOCKET_IFNAME"} <= set(probe.environment_allowed)


def test_the_same_files_freeze_into_the_same_packet(cards: CardRepository, component: Packet) -> None:
    assert freeze_packet(FreezeRequest(cards.campaign)) == component
    folder = packet_folder(component, cards.root)
    assert not folder.engine.exists()
    assert (folder.inputs / "worker.py").read_bytes() == cards.worker.read_bytes()


def test_reviewers_are_told_what_runs_on_the_cards(component: Packet, probe: Packet) -> None:
    told = "\n".join(summarize_for_review(component))
    assert "cards: 2 of cpu, discover" in told
    assert "compared at: scaled, moved, doubled, every cache" in told
    assert "OMP_NUM_THREADS=1" in told
    assert "engine vocabulary" not in told
    told = "\n".join(summarize_for_review(probe))
    assert "one all_reduce of 1024 float32 over 2 ranks, gloo" in told
    assert "GLOO_SOCKET_IFNAME=lo" in told


def test_a_rehearsal_runs_the_campaigns_own_worker_whatever_the_target(cards: CardRepository) -> None:
    packets = [freeze_rehearsal(FreezeRequest(cards.campaign), target) for target in RehearsalTarget]
    assert {(packet.kind, packet.service) for packet in packets} == {("rehearsal", "registered")}


def test_code_for_servers_does_not_take_a_component(component: Packet) -> None:
    with pytest.raises(RuntimeError, match="a component where servers are started"):
        endpoint_packet(component)
    packet = make_packet()
    assert endpoint_packet(packet).canonical() == packet.canonical()


def test_only_servers_have_a_schedule_and_a_coin(component: Packet) -> None:
    assert schedule_of(component.preregistration) is None
    assert order_for(component.preregistration, "0" * 32) == registered_order(component.preregistration)
    packet = make_packet()
    assert schedule_of(packet.preregistration) is not None
    assert order_for(packet.preregistration, "0" * 32) == packet.order


def test_an_endpoint_campaign_is_a_subject_of_its_own_kind(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    top, campaign = locate_campaign(repository.campaign)
    assert isinstance(subject_of("real", campaign, top), EndpointSubject)


def test_signers_files_and_patches_travel_with_a_component(tmp_path: Path) -> None:
    for name in ("signers", "notes.json", "0001-x.patch", "host.yaml", "c.yaml", "worker.py"):
        (tmp_path / name).write_text(name)
    repository = make_card_repository(tmp_path / "lab", cards=1)
    _, campaign = locate_campaign(repository.campaign)
    assert isinstance(campaign, LoadedCardCampaign)
    whole = LoadedCardCampaign(
        preregistration=campaign.preregistration,
        root=tmp_path,
        host=campaign.host,
        worker=repository.worker,
        files=(repository.root / "notes.json",),
        allowed_signers=repository.root / "signers",
        patches={0: (repository.root / "0001-x.patch",)},
    )
    for path in (*whole.files, repository.root / "signers", repository.root / "0001-x.patch"):
        path.write_text(path.name)
    roles = {one.file.role for one in card_subject("real", whole, repository.root).inputs}
    assert {"allowed_signers", "file-notes.json", "patch-0-0001-x.patch", "worker.py"} <= roles


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """An interpreter in an environment with nothing in it."""
    (tmp_path / "bare" / "bin").mkdir(parents=True)
    (tmp_path / "bare" / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    python = tmp_path / "bare" / "bin" / "python"
    python.symlink_to(Path(sys.executable).resolve())
    return python


def test_an_interpreter_without_torch_is_refused(tmp_path: Path, bare: Path) -> None:
    repository = make_card_repository(tmp_path / "lab", cards=1)
    host = repository.root / "campaigns" / "hosts" / "test-host.yaml"
    host.write_text(yaml.safe_dump(yaml.safe_load(host.read_text()) | {"interpreters": {"torch": str(bare)}}))
    repository.commit()
    with pytest.raises(FreezeRefused) as caught:
        freeze_packet(FreezeRequest(repository.campaign))
    assert caught.value.codes == (Code.NOT_FOUND,)


def test_every_role_has_one_place_in_the_export() -> None:
    code = Path("/code")
    assert exported_path(code, module_role("stream.py")) == Path("/code/labctl/component/stream.py")
    assert exported_path(code, file_role("notes.json")) == Path("/code/files/notes.json")
    assert exported_path(code, "worker.py") == Path("/code/worker.py")
    roles = ("worker.py", "component-x.py", "file-x", "host.yaml")
    assert [is_exported(role) for role in roles] == [True, True, True, False]
