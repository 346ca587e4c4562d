import os
import subprocess
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import Refused
from labctl.host.storage import file_system_type, free_bytes, open_trusted_folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "anchor" / "authorization" / "markers"
    folder.mkdir(parents=True)
    for path in (folder, folder.parent, folder.parent.parent):
        path.chmod(0o700)
    return tmp_path


def refused(path: Path, anchor: Path) -> str:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(Refused) as caught:
        open_trusted_folder(path, anchor)
    assert set(caught.value.codes) == {Code.UNSAFE_ROOT}
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    return str(caught.value)


def test_a_folder_of_our_own_is_opened(root: Path) -> None:
    folder = root / "anchor" / "authorization" / "markers"
    descriptor = open_trusted_folder(folder, root / "anchor")
    assert os.fstat(descriptor).st_ino == folder.stat().st_ino
    os.close(descriptor)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
@pytest.mark.parametrize("place", ["anchor", "anchor/authorization", "anchor/authorization/markers"])
def test_a_folder_that_others_can_write_to_is_refused(root: Path, place: str, mode: int) -> None:
    (root / place).chmod(mode)
    message = refused(root / "anchor/authorization/markers", root / "anchor")
    assert str(root / place) in message
    assert f"{mode:04o}" in message


def test_what_lies_above_the_anchor_may_be_open_to_others(root: Path) -> None:
    (root / "anchor").chmod(0o777)
    descriptor = open_trusted_folder(root / "anchor/authorization/markers", root / "anchor/authorization")
    assert os.fstat(descriptor).st_ino == (root / "anchor/authorization/markers").stat().st_ino
    os.close(descriptor)


def test_every_unsafe_folder_is_told(root: Path) -> None:
    (root / "anchor").chmod(0o777)
    (root / "anchor/authorization").chmod(0o777)
    with pytest.raises(Refused) as caught:
        open_trusted_folder(root / "anchor/authorization", root / "anchor")
    assert len(caught.value.problems) == 2


def test_a_link_on_the_way_is_refused(root: Path) -> None:
    (root / "other").symlink_to("anchor")
    assert "a symbolic link" in refused(root / "other/authorization", root / "other")
    (root / "anchor/authorization/inner").symlink_to("markers")
    assert "a symbolic link" in refused(root / "anchor/authorization/inner", root / "anchor")


def test_a_folder_of_another_owner_is_refused(root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    os.chown(root / "anchor/authorization", 12345, -1)
    assert "owner 12345" in refused(root / "anchor/authorization/markers", root / "anchor")


def test_a_sticky_folder_of_root_is_allowed(root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    (root / "anchor/authorization").chmod(0o1777)
    os.close(open_trusted_folder(root / "anchor/authorization/markers", root / "anchor"))
    os.chown(root / "anchor/authorization", 12345, -1)
    assert "owner 12345" in refused(root / "anchor/authorization/markers", root / "anchor")


def test_a_folder_outside_the_anchor_is_refused(root: Path) -> None:
    assert "trusted anchor" in refused(root / "anchor", root / "anchor/authorization")


def test_what_is_not_there_or_no_folder_is_refused(root: Path) -> None:
    (root / "anchor/file").write_bytes(b"")
    os.mkfifo(root / "anchor/fifo")
    for name in ("absent", "file", "fifo"):
        assert str(root / "anchor" / name) in refused(root / "anchor" / name, root / "anchor")


def test_the_file_system_is_named_as_the_system_names_it(tmp_path: Path) -> None:
    names = {"ext2/ext3": "ext4", "overlayfs": "overlay"}
    for path in (tmp_path, Path("/dev/shm")):
        said = subprocess.run(
            ["stat", "-f", "-c", "%T", str(path)], capture_output=True, text=True, check=True
        ).stdout.strip()
        assert file_system_type(path) == names.get(said, said)


def test_an_unknown_file_system_has_its_number() -> None:
    assert file_system_type(Path("/proc")) == "0x9fa0"


def test_a_path_that_is_not_there_has_no_file_system(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        file_system_type(tmp_path / "absent")


def test_free_space_is_what_an_ordinary_user_has(tmp_path: Path) -> None:
    said = subprocess.run(
        ["df", "--output=avail", "-B1", str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    assert abs(free_bytes(tmp_path) - int(said)) < 1 << 30
