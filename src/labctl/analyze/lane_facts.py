"""Which attempt in its lane a run is, as its own marker says, and what luck alone could have done by then."""

from collections.abc import Iterator

from labctl.analyze.evidence import RunEvidence, differences
from labctl.analyze.figures import decimal_text, figure, short_text
from labctl.errors import Problem
from labctl.packet.lane import lane_alpha, lane_key, lucky_pass_chance
from labctl.records.verdict import Figure

HUNDRED = 100
SHOWN_DIGITS = 12


def lane_conflicts(evidence: RunEvidence) -> Iterator[Problem]:
    """A lane in the marker that is not what the packet and the machine say."""
    marker = evidence.marker
    if marker.lane is not None:
        expected = lane_key(evidence.packet, marker.host.machine_id_sha256)
        yield from differences("data/packet", [("lane of the marker", expected, marker.lane.key)])


def lane_figures(evidence: RunEvidence) -> tuple[Figure, ...]:
    """The attempt, and the chance that one of so many attempts without any effect has passed by luck."""
    lane = evidence.marker.lane
    if lane is None:
        return ()
    chance = lucky_pass_chance(lane_alpha(evidence.packet.preregistration), lane.attempt)
    return (figure("lane_attempt", "", lane.attempt, "attempts"), figure("lucky_pass_chance", "", chance, "share"))


def lane_lines(evidence: RunEvidence) -> list[str]:
    """The same as a sentence."""
    lane = evidence.marker.lane
    if lane is None:
        return []
    alpha = lane_alpha(evidence.packet.preregistration)
    chance = lucky_pass_chance(alpha, lane.attempt)
    target = lane.key.target.partition(":")
    named = f"{target[0]} {target[2][:SHOWN_DIGITS]}, {lane.key.metric}, machine {lane.key.machine_id_sha256[:12]}"
    return [
        f"attempt {lane.attempt} in its lane ({named}): by now a pass by luck had a chance of "
        f"{short_text(chance * HUNDRED)} %, at {decimal_text(alpha * HUNDRED)} % for each attempt"
    ]
