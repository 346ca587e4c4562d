from pathlib import Path

from labctl.analyze.start_values import environment_template, expected_environment, start_values
from labctl.prereg.environment import BASE_ENVIRONMENT
from tests.fakes.leg import LegPlace
from tests.fakes.packets import make_packet


def test_a_packet_of_an_earlier_release_expects_the_names_that_it_allows(tmp_path: Path) -> None:
    order = LegPlace.new(tmp_path).order()
    for allowed in (tuple(sorted(BASE_ENVIRONMENT)), ("HOME", "PATH", "TMPDIR")):
        packet = make_packet(environment_allowed=list(allowed))
        environment = expected_environment(packet, order, start_values(packet, order))
        assert tuple(sorted(environment)) == allowed
        assert tuple(sorted(environment_template(packet, order, order.arm))) == allowed
        assert environment["HOME"] == order.paths.home
