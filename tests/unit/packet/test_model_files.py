from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.errors import FreezeRefused
from labctl.packet.model_files import verify_model

FILES = {"config.json": b"{}", "shards/one.bin": b"one", "shards/two.bin": b"two"}
MANIFEST = "".join(f"{sha256_hex(data)}  {path}\n" for path, data in FILES.items()).encode()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "shards").mkdir()
    for path, data in FILES.items():
        (tmp_path / path).write_bytes(data)
    return tmp_path


def test_a_model_is_its_manifest(model: Path) -> None:
    frozen = verify_model("tiny", model, MANIFEST)
    assert (frozen.files, frozen.bytes, frozen.manifest_sha256) == (3, 8, sha256_hex(MANIFEST))


def test_every_changed_missing_and_added_file_is_named(model: Path) -> None:
    (model / "config.json").write_bytes(b"[]")
    (model / "shards/one.bin").unlink()
    (model / "shards/three.bin").write_bytes(b"")
    with pytest.raises(FreezeRefused) as refused:
        verify_model("tiny", model, MANIFEST)
    assert refused.value.codes == (Code.FILE_DRIFT,) * 3
    assert [Path(problem.where).name for problem in refused.value.problems] == ["config.json", "one.bin", "three.bin"]


def test_a_model_folder_that_is_not_there_is_drift(tmp_path: Path) -> None:
    with pytest.raises(FreezeRefused) as refused:
        verify_model("tiny", tmp_path / "none", MANIFEST)
    assert len(refused.value.problems) == 3
