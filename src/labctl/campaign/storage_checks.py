"""Where a campaign would write: what preflight looks at on the file systems of the roots."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from labctl.campaign.look import Look, attempted
from labctl.campaign.roots import Roots
from labctl.codes import Code
from labctl.host.storage import file_system_type, free_bytes, is_writable, open_trusted_folder
from labctl.prereg.host_profile import Storage
from labctl.prereg.model import CampaignClass

MIB = 1 << 20
VOLATILE = ("overlay", "tmpfs")


def existing(folder: Path) -> Path:
    """The folder, or the nearest parent that exists: preflight creates no root."""
    while not folder.exists():
        folder = folder.parent
    return folder


def root_folders(roots: Roots) -> tuple[tuple[str, Path], ...]:
    """The four roots by name."""
    return (
        ("authorization", roots.authorization.root),
        ("runs", roots.runs),
        ("analyses", roots.analyses),
        ("scratch", roots.scratch),
    )


def storage_looks(roots: Roots, storage: Storage, campaign_class: CampaignClass) -> Iterator[Look]:
    """File systems of the roots, whether they can be written to, and free space."""
    is_exploratory = campaign_class is CampaignClass.EXPLORATORY
    allowed = [kind for kind in storage.allowed if is_exploratory or kind not in VOLATILE]
    for name, folder in root_folders(roots):
        found = file_system_type(existing(folder))
        do = f"put {folder} on another file system, or allow it in the host profile"
        expected = f"one of {', '.join(allowed)}"
        yield Look(f"file_system.{name}", Code.UNSAFE_ROOT, expected, found, is_met=found in allowed, do=do)
        can_write = is_writable(existing(folder))
        got, do = ("writable" if can_write else "read-only"), f"make {existing(folder)} writable"
        yield Look(f"writable.{name}", Code.UNSAFE_ROOT, "a folder we may write to", got, is_met=can_write, do=do)
    free_mib, wanted_mib = free_bytes(existing(roots.runs)) // MIB, storage.min_free_mib
    yield Look(
        "free_space",
        Code.DISK_FULL,
        f"at least {wanted_mib} MiB free",
        f"{free_mib} MiB",
        is_met=free_mib >= wanted_mib,
        do=f"free space on the file system of {roots.runs}",
    )


def trust_looks(roots: Roots) -> Iterator[Look]:
    """Whether anybody else could write to the roots."""
    anchor = roots.anchor
    if not anchor.exists():
        found, expected = f"no {anchor} yet: labctl makes it, mode 0700", "folders that only we can write to"
        yield Look("trusted", Code.UNSAFE_ROOT, expected, found, is_met=True)
        return
    for name, folder in root_folders(roots):
        there = existing(folder)
        if not there.is_relative_to(anchor):
            there = anchor
        yield from attempted(f"trusted.{name}", "folders that only we can write to", _opens(there, anchor), str(there))


def _opens(folder: Path, anchor: Path) -> Callable[[], None]:
    return lambda: os.close(open_trusted_folder(folder, anchor))
