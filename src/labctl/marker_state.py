"""What lies at a marker's path, read and never written; anything at all means that the packet is spent."""

import os
from dataclasses import dataclass

from labctl.codes import Code
from labctl.durable import read_regular
from labctl.errors import BrokenEvidence, NotFound, Problem
from labctl.records.marker import Marker
from labctl.rundir import AuthorizationPaths

MAX_MARKER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class MarkerAbsent:
    """Nothing lies at the marker's path."""


@dataclass(frozen=True, slots=True)
class MarkerValid:
    """A marker of this packet, as labctl writes it."""

    marker: Marker
    data: bytes


@dataclass(frozen=True, slots=True)
class MarkerEmpty:
    """A file without a byte: the consuming process ended between creating and writing it."""


@dataclass(frozen=True, slots=True)
class MarkerUnknown:
    """Anything else; the packet is spent all the same."""

    what: str


MarkerState = MarkerAbsent | MarkerValid | MarkerEmpty | MarkerUnknown


def read_marker_state(authorization: AuthorizationPaths, packet_id: str) -> MarkerState:
    """What lies at a packet's marker path; anything at all means that the packet is spent."""
    path = authorization.marker(packet_id)
    if not os.path.lexists(path):
        return MarkerAbsent()
    try:
        data = read_regular(path, limit_bytes=MAX_MARKER_BYTES)
        if not data:
            return MarkerEmpty()
        marker = Marker.from_json(data, str(path))
    except BrokenEvidence as error:
        return MarkerUnknown(error.problems[0].got)
    is_ours = marker.canonical() == data and marker.packet_sha256 == packet_id
    return MarkerValid(marker, data) if is_ours else MarkerUnknown(f"a marker of packet {marker.packet_sha256}")


def find_marker(authorization: AuthorizationPaths, run_dir: str) -> MarkerValid:
    """The marker that names a run.

    Raises:
        NotFound: no marker in this authorization root does.
    """
    for path in sorted(authorization.markers.glob("*.json")):
        state = read_marker_state(authorization, path.stem)
        if isinstance(state, MarkerValid) and state.marker.run_dir == run_dir:
            return state
    do = "name the authorization root under which the run was consumed"
    where = str(authorization.markers)
    raise NotFound(Problem(Code.NOT_FOUND, where, f"a marker for run {run_dir}", "none", do))
