import json
from pathlib import Path

import pytest

from labctl.campaign.noise_check import noise_looks
from labctl.frozen import canonical_json
from labctl.host.identity import read_host_identity
from labctl.packet.noise_host import noise_host
from labctl.packet.review import ReviewedPacket
from labctl.rundir import PacketPaths
from tests.fakes.packets import make_packet, packet_document

BENCH = json.loads((Path(__file__).parents[2] / "fixtures" / "prereg" / "noise" / "bench.json").read_text())


def reviewed(folder: Path, noise: bytes, **changes: object) -> ReviewedPacket:
    pinned = {"role": "noise.json", "path": "campaigns/noise/n.json", "sha256": "0" * 64, "bytes": len(noise)}
    said: dict[str, object] = {"preregistration": {"class": "record"}, **changes}
    packet = make_packet(**said, files=[*packet_document()["files"], pinned])  # type: ignore[misc] # a document
    paths = PacketPaths(folder / packet.id)
    paths.inputs.mkdir(parents=True)
    (paths.inputs / "noise.json").write_bytes(noise)
    return ReviewedPacket(packet, packet.id, paths, ())


@pytest.fixture
def own() -> bytes:
    host = noise_host(read_host_identity()).model_dump(mode="json")
    return canonical_json(BENCH | {"host": host, "engine": "embedded 1", "target": "engine:embedded"})


def test_a_record_with_the_noise_of_this_very_host_goes_on(tmp_path: Path, own: bytes) -> None:
    looks = list(noise_looks(reviewed(tmp_path, own)))
    assert [look.name for look in looks] == ["noise", "noise.host", "noise.service"]
    assert all(look.is_met for look in looks)


def test_a_record_with_the_noise_of_another_host_is_refused_by_what_differs(tmp_path: Path) -> None:
    _, host, _ = noise_looks(reviewed(tmp_path, canonical_json(BENCH)))
    assert not host.is_met
    assert "machine_id_sha256, cpu_model" in host.observed


@pytest.mark.parametrize(("key", "value"), [("engine", "vllm 0.32.0"), ("target", BENCH["target"])])
def test_a_record_with_the_noise_of_another_service_is_refused(
    tmp_path: Path, own: bytes, key: str, value: str
) -> None:
    *_, service = noise_looks(reviewed(tmp_path, canonical_json(json.loads(own) | {key: value})))
    assert (service.name, service.is_met) == ("noise.service", False)
    assert value.split(maxsplit=1)[0] in service.observed


def test_a_noise_record_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    looks = list(noise_looks(reviewed(tmp_path, b"{}")))
    assert {look.name for look in looks} == {"noise"}
    assert not any(look.is_met for look in looks)


def test_only_a_record_is_held_to_it(tmp_path: Path, own: bytes) -> None:
    assert list(noise_looks(reviewed(tmp_path / "a", own, preregistration={"class": "exploratory"}))) == []
    assert list(noise_looks(reviewed(tmp_path / "b", own, kind="rehearsal"))) == []
