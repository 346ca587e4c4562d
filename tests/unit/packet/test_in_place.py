from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.packet.freeze import FreezeRequest, be_silent, freeze_packet
from labctl.packet.in_place import verify_packet_in_place
from labctl.packet.machine import packet_folder
from labctl.packet.model import Packet
from tests.fakes.lab_repository import LabRepository
from tests.fakes.packets import merged


@pytest.fixture
def lab(tmp_path: Path) -> LabRepository:
    """A campaign with one source and one model, whose folders lie beside it."""
    lab = LabRepository.create(tmp_path / "lab")
    engine = LabRepository.create(tmp_path / "engine")
    (tmp_path / "model").mkdir()
    (tmp_path / "model/weights.bin").write_bytes(b"weights")
    lab.write("campaigns/models/tiny.sha256", f"{sha256_hex(b'weights')}  weights.bin\n")
    lab.edit("campaigns/hosts/any-cpu.yaml", "sources: {}", f"sources: {{serving: {engine.top}}}")
    lab.edit("campaigns/hosts/any-cpu.yaml", "models: {}", f"models: {{tiny: {tmp_path / 'model'}}}")
    lab.edit_campaign(
        "service:",
        f'sources: [{{git: serving, commit: "{engine.head}"}}]\n'
        "models: [{name: tiny, manifest: models/tiny.sha256}]\nservice:",
    )
    lab.edit_campaign('labctl-{nonce}"]', 'labctl-{nonce}", --model, "{model:tiny}"]')
    lab.commit("An engine and a model")
    return lab


def freeze(lab: LabRepository) -> Packet:
    return freeze_packet(FreezeRequest(lab.campaign))


def changed(packet: Packet, **changes: object) -> Packet:
    document = merged(packet.model_dump(mode="json"), changes)
    return Packet.model_validate(document, strict=False)


def test_an_untouched_machine_is_as_frozen_and_says_what_is_hashed(lab: LabRepository) -> None:
    said: list[str] = []
    assert verify_packet_in_place(freeze(lab), lab.top, said.append) == ()
    assert said == [
        "hashing labctl's own files",
        "hashing the interpreter",
        "hashing source serving",
        "hashing model tiny",
    ]


def test_a_changed_source_and_a_changed_model_are_named(lab: LabRepository, tmp_path: Path) -> None:
    packet = freeze(lab)
    (tmp_path / "engine/README.md").write_text("patched\n")
    (tmp_path / "model/weights.bin").write_bytes(b"Weights")
    problems = verify_packet_in_place(packet, lab.top, be_silent)
    assert [problem.code for problem in problems] == [Code.DIRTY_SOURCE, Code.FILE_DRIFT]


def test_the_manifest_comes_from_the_packet_and_not_from_the_work_tree(lab: LabRepository, tmp_path: Path) -> None:
    packet = freeze(lab)
    (tmp_path / "model/weights.bin").write_bytes(b"Weights")
    lab.write("campaigns/models/tiny.sha256", f"{sha256_hex(b'Weights')}  weights.bin\n")
    assert [problem.code for problem in verify_packet_in_place(packet, lab.top, be_silent)] == [Code.FILE_DRIFT]
    (packet_folder(packet, lab.top).inputs / "model-tiny.sha256").unlink()
    assert [problem.code for problem in verify_packet_in_place(packet, lab.top, be_silent)] == [Code.MISSING_FILE]


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"tool": {"tree_dirhash": "0" * 64}}, "labctl: tree_dirhash"),
        ({"analyzers": [{"name": "labctl", "sha256": "0" * 64}]}, "analyzer labctl: sha256"),
        ({"analyzers": [{"name": "standalone", "sha256": "0" * 64}]}, "analyzer standalone: sha256"),
        ({"interpreter": {"pth_files": ["other.pth"]}}, "interpreter embedded: pth_files"),
        ({"interpreter": {"distributions_sha256": "0" * 64}}, "interpreter embedded: distributions_sha256"),
    ],
)
def test_each_part_of_the_tool_and_the_interpreter_is_held(
    lab: LabRepository, changes: dict[str, object], where: str
) -> None:
    packet = changed(freeze(lab), sources=[], models=[], preregistration={"sources": [], "models": []}, **changes)
    problems = verify_packet_in_place(packet, lab.top, be_silent)
    assert [(problem.code, problem.where) for problem in problems] == [(Code.FILE_DRIFT, where)]


def test_an_interpreter_that_is_gone_is_one_problem(lab: LabRepository) -> None:
    packet = changed(freeze(lab), host={"interpreters": {"embedded": "/nonexistent/python"}})
    problems = verify_packet_in_place(packet, lab.top, be_silent)
    assert [problem.code for problem in problems] == [Code.FILE_DRIFT]
