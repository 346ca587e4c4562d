from pathlib import Path

import pytest

from labctl.packet.watched import Depth, WatchedFolder, files_below


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "top/deep/deeper").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    for name in ("top/a.py", "top/b.txt", "top/deep/c.py", "top/deep/deeper/d.so", "elsewhere/e.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "top/linked.py").symlink_to(tmp_path / "elsewhere/e.py")
    (tmp_path / "top/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "top/broken.py").symlink_to(tmp_path / "nothing")
    return tmp_path / "top"


@pytest.mark.parametrize(
    ("suffixes", "depth", "expected"),
    [
        ((".py", ".so"), Depth.TREE, {"a.py", "deep/c.py", "deep/deeper/d.so", "linked.py", "broken.py"}),
        ((".py",), Depth.FOLDER, {"a.py", "linked.py", "broken.py"}),
        ((), Depth.TREE, {"a.py", "b.txt", "deep/c.py", "deep/deeper/d.so", "linked.py", "broken.py", "linked"}),
    ],
)
def test_a_folder_is_walked_without_following_links(
    folder: Path, suffixes: tuple[str, ...], depth: Depth, expected: set[str]
) -> None:
    found = [
        Path(path).relative_to(folder).as_posix() for path in files_below(WatchedFolder(str(folder), suffixes, depth))
    ]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert list(files_below(WatchedFolder(str(tmp_path / "none")))) == []
