import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.errors import BrokenEvidence
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.packet.stamps import InPlace, stamp_in_place
from labctl.packet.tool import PACKAGE_FOLDER
from tests.fakes.lab_repository import LabRepository


@pytest.fixture
def lab(tmp_path: Path) -> LabRepository:
    """A campaign with one source and one model, whose weights are a link to a file elsewhere."""
    lab = LabRepository.create(tmp_path / "lab")
    engine = LabRepository.create(tmp_path / "engine")
    (tmp_path / "model").mkdir()
    (tmp_path / "blob").write_bytes(b"weights")
    (tmp_path / "model/weights.bin").symlink_to(tmp_path / "blob")
    lab.write("campaigns/models/tiny.sha256", f"{sha256_hex(b'weights')}  weights.bin\n")
    lab.edit("campaigns/hosts/any-cpu.yaml", "sources: {}", f"sources: {{serving: {engine.top}}}")
    lab.edit("campaigns/hosts/any-cpu.yaml", "models: {}", f"models: {{tiny: {tmp_path / 'model'}}}")
    lab.edit_campaign(
        "service:\n",
        f'sources: [{{git: serving, commit: "{engine.head}"}}]\n'
        "models: [{name: tiny, manifest: models/tiny.sha256}]\nservice:\n",
    )
    lab.edit_campaign('labctl-{nonce}"]', 'labctl-{nonce}", --model, "{model:tiny}"]')
    lab.commit("An engine and a model")
    return lab


@pytest.fixture
def in_place(lab: LabRepository) -> InPlace:
    return stamp_in_place(freeze_packet(FreezeRequest(lab.campaign)), lab.top)


def _edit_and_set_the_time_back(path: Path) -> None:
    before = path.stat()
    path.write_text("B lab.\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replace(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    os.utime(copy, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    copy.rename(path)


# what is touched, how, which file is named, and what of it
CHANGES: tuple[tuple[str, Callable[[Path], object], str, str], ...] = (
    ("engine/README.md", _edit_and_set_the_time_back, "engine/README.md", "changed_ns"),
    ("engine/README.md", _replace, "engine/README.md", "inode"),
    ("engine/README.md", Path.unlink, "engine/README.md", "no file"),
    ("engine/README.md", lambda path: path.write_text("longer than before\n"), "engine/README.md", "size_bytes"),
    ("model/more.bin", lambda path: path.write_bytes(b"more"), "model/more.bin", "a new file"),
    ("blob", lambda path: path.write_bytes(b"Weights"), "model/weights.bin", "modified_ns"),
)


def test_what_nobody_touched_is_untouched(in_place: InPlace, tmp_path: Path) -> None:
    (tmp_path / "engine/README.md").read_bytes()
    (tmp_path / "engine/untracked.log").write_text("not pinned\n")
    in_place.require_untouched()
    assert str(tmp_path / "engine/README.md") in in_place.stamps
    assert str(Path(sys.executable).resolve()) in in_place.stamps
    assert str(PACKAGE_FOLDER / "leg" / "__main__.py") in in_place.stamps


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: f"{case[0]}-{case[3]}")
def test_every_touch_is_named(
    in_place: InPlace, tmp_path: Path, case: tuple[str, Callable[[Path], object], str, str]
) -> None:
    touched, change, named, got = case
    change(tmp_path / touched)
    with pytest.raises(BrokenEvidence) as broken:
        in_place.require_untouched()
    (problem,) = broken.value.problems
    assert (problem.code, problem.where) == (Code.FILE_DRIFT, str(tmp_path / named))
    assert got in problem.got
