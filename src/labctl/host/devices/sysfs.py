"""What the kernel says about a card on the PCI bus: its device nodes."""

from pathlib import Path

from labctl.host.boot import SYSTEM


def drm_nodes(bus_id: str, system: Path = SYSTEM) -> tuple[str, ...]:
    """The nodes of a PCI device in /dev/dri, `card…` before `renderD…`; empty where the kernel shows none."""
    folder = system / "sys/bus/pci/devices" / bus_id / "drm"
    names = sorted(place.name for place in folder.glob("*")) if folder.is_dir() else []
    return tuple(f"/dev/dri/{name}" for name in names if name.startswith(("card", "renderD")))
