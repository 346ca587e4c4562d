"""Which machine this is, and which boot of it."""

import os
from pathlib import Path

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.errors import PreflightFailed, Problem

SYSTEM = Path("/")
MACHINE_IDS = ("etc/machine-id", "var/lib/dbus/machine-id", "sys/class/dmi/id/product_uuid")
BOOT_ID = "proc/sys/kernel/random/boot_id"


def machine_id_sha256(system: Path = SYSTEM) -> str:
    """The digest of the machine's id: the first of machine-id, D-Bus id and DMI product id that is there and not empty.

    A container may have none of them; then the boot id and the host name stand in, which no other machine shares.

    Raises:
        PreflightFailed: there is nothing that tells this machine from another.
    """
    for name in MACHINE_IDS:
        text = _text(system / name)
        if text:
            return sha256_hex(text.encode())
    return sha256_hex(f"{boot_id(system)}\n{os.uname().nodename}".encode())


def boot_id(system: Path = SYSTEM) -> str:
    """The kernel's random id of this boot.

    Raises:
        PreflightFailed: the kernel does not tell.
    """
    text = _text(system / BOOT_ID)
    if not text:
        raise PreflightFailed(
            Problem(Code.PREFLIGHT, f"/{BOOT_ID}", "the boot's id", "nothing", "mount /proc and run on Linux")
        )
    return text


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except OSError:
        return ""
