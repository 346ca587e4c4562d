"""Work orders of legs on cards: every card found first, nothing ambient, and only the packet's own bytes."""

from pathlib import Path

import pytest
import yaml

from labctl.campaign.card_orders import CardGround, CardPlan, make_card_order, open_card_ground
from labctl.campaign.order_maker import order_maker
from labctl.campaign.roots import Roots
from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.durable import make_folder, make_folders
from labctl.errors import ManifestMismatch
from labctl.marker import ConsumedPacket
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.records.card_order import ComponentOrder, ProbeOrder
from labctl.records.devices import Discovery
from labctl.rundir import RunPaths
from tests.fakes.card_repository import CardRepository, make_card_repository, make_probe_repository
from tests.fakes.consuming import consume

AMBIENT = {"LAB_PROXY_MODE": "on", "CUDA_VISIBLE_DEVICES": "3", "HF_TOKEN": "secret"}


def consumed_packet(repository: CardRepository) -> ConsumedPacket:
    host = repository.root / "campaigns" / "hosts" / "test-host.yaml"
    passed = {"environment_passed": ["LAB_PROXY_MODE", "CUDA_VISIBLE_DEVICES"]}
    host.write_text(yaml.safe_dump(yaml.safe_load(host.read_text()) | passed))
    repository.commit()
    packet = freeze_packet(FreezeRequest(repository.campaign))
    return consume(repository.authorization, packet)


def opened(consumed: ConsumedPacket, root: Path) -> tuple[RunPaths, CardPlan]:
    paths = RunPaths(root / "run")
    make_folders(paths.host)
    make_folders(paths.legs)
    make_folder(root / "scratch")
    roots = Roots.of_profile(consumed.packet.host, root)
    return paths, CardPlan(roots=roots, scratch=root / "scratch", ambient=AMBIENT, clock=SystemClock())


def orders(consumed: ConsumedPacket, root: Path) -> tuple[CardGround, list[ComponentOrder | ProbeOrder]]:
    paths, plan = opened(consumed, root)
    ground = open_card_ground(consumed, paths, plan)
    made = []
    for index, leg in enumerate(consumed.order, start=1):
        files = paths.leg(index, leg)
        make_folder(files.root)
        made.append(make_card_order(index, files, ground))
    return ground, made


def test_every_card_is_written_down_and_each_leg_gets_its_own(tmp_path: Path) -> None:
    consumed = consumed_packet(make_card_repository(tmp_path / "lab", cards=2))
    ground, made = orders(consumed, tmp_path)
    everything = Discovery.from_json((tmp_path / "run" / "data" / "host" / "devices.json").read_bytes(), "devices")
    assert ground.selected == everything.cards
    for index, order in enumerate(made):
        assert isinstance(order, ComponentOrder)
        assert (order.card, order.card_index, order.index) == (everything.cards[index], index, index + 1)
        assert order.discovery_sha256 == ground.discovery_sha256
        assert (order.work.arms, order.work.repeats, order.work.seed) == (("plain", "shifted"), 2, 11)
    assert len({order.nonce for order in made}) == 2


def test_nothing_ambient_reaches_a_worker_and_nothing_selects_its_card_but_labctl(tmp_path: Path) -> None:
    consumed = consumed_packet(make_card_repository(tmp_path / "lab", cards=1))
    _, (order,) = orders(consumed, tmp_path)
    assert order.environment["LAB_PROXY_MODE"] == "on"
    assert not {"CUDA_VISIBLE_DEVICES", "HF_TOKEN"} & order.environment.keys()
    assert set(order.environment) <= set(consumed.packet.environment_allowed)


def test_the_export_holds_the_packets_bytes_and_nothing_else(tmp_path: Path) -> None:
    consumed = consumed_packet(make_card_repository(tmp_path / "lab", cards=1))
    ground, (order,) = orders(consumed, tmp_path)
    files = {path.relative_to(ground.code).as_posix() for path in ground.code.rglob("*") if path.is_file()}
    modules = {f"labctl/component/{role.removeprefix('component-')}" for role in order.inputs if "component-" in role}
    assert files == modules | {"worker.py", "labctl/__init__.py"}
    assert Path(order.argv[5]) == ground.code / "labctl" / "component" / "run_worker.py"
    assert order.argv[6] == str(tmp_path / "run" / "data" / "legs" / "01-card0" / "order.json")


def test_a_packet_that_changed_after_it_was_consumed_is_not_run(tmp_path: Path) -> None:
    consumed = consumed_packet(make_card_repository(tmp_path / "lab", cards=1))
    worker = consumed.folder.inputs / "worker.py"
    worker.chmod(0o600)
    worker.write_bytes(worker.read_bytes() + b"\n")
    paths, plan = opened(consumed, tmp_path)
    with pytest.raises(ManifestMismatch) as caught:
        order_maker(consumed, paths, plan)
    assert caught.value.codes == (Code.DIGEST_MISMATCH,)


def test_the_ranks_of_a_probe_meet_at_one_port_and_know_their_places(tmp_path: Path) -> None:
    consumed = consumed_packet(make_probe_repository(tmp_path / "lab", ranks=2))
    ground, (order,) = orders(consumed, tmp_path)
    assert isinstance(order, ProbeOrder)
    assert order.cards == ground.selected
    assert [own["RANK"] for own in order.rank_environment] == ["0", "1"]
    assert {own["MASTER_PORT"] for own in order.rank_environment} == {str(order.port)}
    assert {own["WORLD_SIZE"] for own in order.rank_environment} == {"2"}
    assert (order.ranks, order.backend, order.timeouts.total_s) == (2, "gloo", 40)
