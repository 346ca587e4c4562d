"""A real ext4 file system in an image file: act, copy the image at that moment, and see what a mount of the copy has.

`crash_after(folder, act)` mounts a new image with a commit interval of five minutes, calls `act` with a folder in it,
copies the image while everything that was not synced is still in memory, and yields the copy, mounted (its journal is
replayed by the kernel) for the time of the `with`. What `act` wrote without a sync is not in there.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

IMAGE_BYTES = 48 << 20
TOOLS = ("mkfs.ext4", "mount", "umount")


def why_not() -> str | None:
    """Why images cannot be mounted here; None where they can."""
    if os.geteuid() != 0:
        return "needs root to mount an ext4 image"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    return None if Path("/dev/loop-control").exists() else "needs loop devices"


@contextmanager
def crash_after(folder: Path, act: Callable[[Path], object]) -> Iterator[Path]:
    """The file system as it is found after the power was lost right after `act`."""
    image, copy = folder / "image", folder / "copy"
    image.touch()
    os.truncate(image, IMAGE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    with _mounted(image, folder / "before") as there:
        (there / "root").mkdir(mode=0o700)
        os.sync()
        act(there / "root")
        shutil.copyfile(image, copy)
    with _mounted(copy, folder / "after") as there:
        yield there / "root"


@contextmanager
def _mounted(image: Path, there: Path) -> Iterator[Path]:
    there.mkdir()
    subprocess.run(["mount", "-o", "loop,commit=300", str(image), str(there)], check=True)
    try:
        yield there
    finally:
        subprocess.run(["umount", str(there)], check=True)
