from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.errors import DirtySource, FreezeRefused
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.packet.in_place import verify_packet_in_place
from labctl.packet.patch_series import Patch, prove_series
from labctl.prereg.sources import GitSource
from tests.fakes.lab_repository import LabRepository


@pytest.fixture
def engine(tmp_path: Path) -> LabRepository:
    """An engine whose last two commits change, add, remove, rename, link and make executable."""
    engine = LabRepository.create(tmp_path / "engine")
    engine.write("kernel.py", "SPEED = 1\n")
    engine.write("old.py", "".join(f"line {number}\n" for number in range(9)))
    engine.commit("Base")
    engine.write("kernel.py", "SPEED = 2\n")
    engine.write("bin/tune.sh", "#!/bin/sh\n").chmod(0o755)
    (engine.top / "latest").symlink_to("kernel.py")
    engine.commit("Faster")
    engine.write("kernel.py", "SPEED = 3 \n")
    engine.git("mv", "old.py", "new.py")
    (engine.top / "blob.bin").write_bytes(bytes(range(256)))
    engine.commit("Faster still")
    return engine


def series_of(engine: LabRepository, folder: Path) -> tuple[Patch, ...]:
    engine.git("format-patch", "--quiet", "--binary", "--full-index", "HEAD~2..HEAD", "-o", str(folder))
    return tuple(Patch(path.name, path.read_bytes()) for path in sorted(folder.glob("*.patch")))


def declared(engine: LabRepository) -> GitSource:
    return GitSource(git="serving", commit=engine.head, base=engine.git("rev-parse", "HEAD~2"), patches="patches/mine")


def refusal(engine: LabRepository, series: tuple[Patch, ...], scratch: Path) -> DirtySource:
    with pytest.raises(DirtySource) as refused:
        prove_series(engine.top, declared(engine), series, scratch)
    assert refused.value.codes[0] is Code.DIRTY_SOURCE
    assert not list(scratch.glob("series-*"))
    return refused.value


def test_a_series_that_makes_the_commit_is_proved(engine: LabRepository, tmp_path: Path) -> None:
    series = series_of(engine, tmp_path / "patches")
    prove_series(engine.top, declared(engine), series, tmp_path)
    assert [patch.name for patch in series] == ["0001-Faster.patch", "0002-Faster-still.patch"]


def test_a_scratch_folder_inside_a_work_tree_does_not_hide_the_patches(engine: LabRepository, tmp_path: Path) -> None:
    series = series_of(engine, tmp_path / "patches")
    scratch = engine.top / ".labctl/scratch"
    scratch.mkdir(parents=True)
    prove_series(engine.top, declared(engine), series, scratch)
    assert len(refusal(engine, series[:1], scratch).problems) == 4


def test_a_patch_that_is_missing_or_out_of_order_does_not_apply(engine: LabRepository, tmp_path: Path) -> None:
    first, second = series_of(engine, tmp_path / "patches")
    assert refusal(engine, (second,), tmp_path).problems[0].where.endswith(second.name)
    assert refusal(engine, (second, first), tmp_path).problems[0].where.endswith(second.name)


def test_a_series_that_stops_early_names_what_differs(engine: LabRepository, tmp_path: Path) -> None:
    first, _ = series_of(engine, tmp_path / "patches")
    got = [problem.got for problem in refusal(engine, (first,), tmp_path).problems]
    assert got == [
        "blob.bin: nothing",
        "kernel.py: other bytes",
        "new.py: nothing",
        "'old.py', which that tree does not have",
    ]


def test_one_changed_character_of_a_patch_is_another_tree(engine: LabRepository, tmp_path: Path) -> None:
    first, second = series_of(engine, tmp_path / "patches")
    changed = Patch(second.name, second.data.replace(b"+SPEED = 3 ", b"+SPEED = 3"))
    assert [p.got for p in refusal(engine, (first, changed), tmp_path).problems] == ["kernel.py: other bytes"]


def test_a_patch_cannot_write_outside_the_export(engine: LabRepository, tmp_path: Path) -> None:
    escape = b"diff --git a/x b/x\n--- /dev/null\n+++ b/../../escaped\n@@ -0,0 +1 @@\n+out\n"
    refusal(engine, (Patch("0001-escape.patch", escape),), tmp_path)
    assert not list(tmp_path.rglob("escaped"))


def campaign_on(engine: LabRepository, tmp_path: Path) -> LabRepository:
    lab = LabRepository.create(tmp_path / "lab")
    lab.edit("campaigns/hosts/any-cpu.yaml", "sources: {}", f"sources: {{serving: {engine.top}}}")
    said = declared(engine)
    text = f'{{git: serving, commit: "{said.commit}", base: "{said.base}", patches: patches/mine}}'
    lab.edit_campaign("service:\n", f"sources: [{text}]\nservice:\n")
    series_of(engine, lab.top / "campaigns/patches/mine")
    lab.commit("A patched engine")
    return lab


def test_a_frozen_series_travels_in_the_packet(engine: LabRepository, tmp_path: Path) -> None:
    lab = campaign_on(engine, tmp_path)
    said: list[str] = []
    packet = freeze_packet(FreezeRequest(lab.campaign, progress=said.append))
    series = {pinned.role: pinned.sha256 for pinned in packet.files if pinned.role.startswith("patch-0-")}
    assert list(series) == ["patch-0-0001-Faster.patch", "patch-0-0002-Faster-still.patch"]
    assert series["patch-0-0001-Faster.patch"] == sha256_hex(
        (lab.top / "campaigns/patches/mine/0001-Faster.patch").read_bytes()
    )
    assert any(line.startswith("applying the patches of source serving") for line in said)
    assert verify_packet_in_place(packet, lab.top, said.append) == ()


def test_a_series_of_another_commit_refuses_the_freeze(engine: LabRepository, tmp_path: Path) -> None:
    lab = campaign_on(engine, tmp_path)
    (lab.top / "campaigns/patches/mine/0002-Faster-still.patch").unlink()
    lab.commit("One patch is gone")
    with pytest.raises(FreezeRefused) as refused:
        freeze_packet(FreezeRequest(lab.campaign))
    assert set(refused.value.codes) == {Code.DIRTY_SOURCE}
    assert not (lab.top / ".labctl/authorization").exists()


def test_sources_without_a_series_keep_their_canonical_form() -> None:
    plain = GitSource(git="serving", commit="1" * 40)
    assert plain.model_dump(mode="json") == {"git": "serving", "commit": "1" * 40}
