"""A packet's models and sets of compiled files, held against the manifests in the packet's own folder."""

from pathlib import Path

from labctl.durable import read_regular
from labctl.packet.contents import binaries_role, manifest_role
from labctl.packet.machine import machine_key, packet_folder
from labctl.packet.model import FrozenModelFiles, Packet
from labctl.packet.model_files import verify_model
from labctl.packet.opening import LIMIT_BYTES


def verify_pinned_model(packet: Packet, repository: Path, name: str) -> FrozenModelFiles:
    """Hash a model's files again.

    Raises:
        FreezeRefused: with every file that is missing, differs or is not listed (FILE_DRIFT).
        BrokenEvidence: the packet's folder does not hold the manifest.
    """
    manifest = read_regular(packet_folder(packet, repository).inputs / manifest_role(name), limit_bytes=LIMIT_BYTES)
    return verify_model(name, machine_key(packet.host.models, name, repository), manifest)


def verify_pinned_binaries(packet: Packet, repository: Path, key: str) -> FrozenModelFiles:
    """Hash a set of compiled files again.

    Raises:
        FreezeRefused: with every file that is missing, differs or is not listed (FILE_DRIFT).
        BrokenEvidence: the packet's folder does not hold the manifest.
    """
    manifest = read_regular(packet_folder(packet, repository).inputs / binaries_role(key), limit_bytes=LIMIT_BYTES)
    return verify_model(key, machine_key(packet.host.binaries, key, repository), manifest)
