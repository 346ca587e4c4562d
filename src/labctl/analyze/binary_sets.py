"""The sets of compiled files in which the arms differ: which files each holds, and what a start mapped of them."""

from pathlib import PurePosixPath
from typing import NamedTuple

from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.record_reader import RecordReader
from labctl.analyze.start_values import start_values
from labctl.packet.contents import binaries_role
from labctl.packet.model import EndpointPacket
from labctl.prereg.arms import arm_binaries
from labctl.prereg.treatment_kinds import BinariesTreatment

DIGEST_AND_SPACES = 66


class MappedSet(NamedTuple):
    """What one start mapped, seen from the set of its arm."""

    folder: str
    """Where the arm's files lie."""
    own: tuple[str, ...]
    """Files of the manifest that were mapped from there."""
    unlisted: tuple[str, ...]
    """Files that were mapped from there and that the manifest does not list."""
    elsewhere: tuple[str, ...]
    """Files of the manifest's names that were mapped from somewhere else."""


def read_binary_sets(reader: RecordReader, packet: EndpointPacket) -> dict[str, frozenset[str]]:
    """The paths that each set's manifest lists, by the set's key; the manifests are pinned with the other inputs."""
    treatment = packet.preregistration.treatment
    keys = treatment.manifests() if isinstance(treatment, BinariesTreatment) else ()
    texts = {key: reader.bytes_of(f"packet/inputs/{binaries_role(key)}", because=None) or b"" for key in keys}
    return {
        key: frozenset(line[DIGEST_AND_SPACES:] for line in data.decode("utf-8", "replace").split("\n") if line)
        for key, data in texts.items()
    }


def mapped_set(evidence: RunEvidence, leg: LegEvidence) -> MappedSet | None:
    """What a start mapped of the set of its arm; None where that was not recorded."""
    key = arm_binaries(evidence.packet.preregistration, leg.arm)
    if key is None or leg.order is None or leg.maps is None:
        return None
    folder = start_values(evidence.packet, leg.order).binaries
    if folder is None:
        return None
    listed = evidence.binary_sets.get(key, frozenset())
    names = {PurePosixPath(path).name for path in listed}
    mapped = sorted({line.rpartition("\t")[0] for line in leg.maps})
    inside = [path for path in mapped if path.startswith(f"{folder}/")]
    own = [path for path in inside if path.removeprefix(f"{folder}/") in listed]
    others = [path for path in mapped if path not in inside and PurePosixPath(path).name in names]
    return MappedSet(folder, tuple(own), tuple(path for path in inside if path not in own), tuple(others))
