import socket

import pytest

from labctl.records.leg import StopCause
from tests.fakes.leg import LegPlace, RunningLeg, codes_of, run


def test_a_second_start_of_the_same_leg_is_refused_and_changes_nothing(place: LegPlace) -> None:
    run(place)
    before = place.files.manifest.read_bytes()
    status, errors = run(place)
    assert status == 3
    assert "[ALREADY_STARTED]" in errors
    assert place.files.manifest.read_bytes() == before
    place.assert_closed()


@pytest.mark.parametrize("field", ["machine_id_sha256", "boot_id"])
def test_another_machine_or_boot_is_refused_before_anything_starts(place: LegPlace, field: str) -> None:
    status, _ = run(place, **{field: "f" * 64})
    assert status == 3
    assert_refused(place, "WRONG_MACHINE")


def test_a_used_scratch_folder_is_refused(place: LegPlace) -> None:
    (place.scratch / "cache/compiled").write_text("from another start")
    status, _ = run(place)
    assert status == 3
    assert_refused(place, "PREFLIGHT")


def test_a_taken_port_is_refused(place: LegPlace) -> None:
    with socket.create_server(("127.0.0.1", place.port), reuse_port=True):
        status, _ = run(place)
    assert status == 3
    assert_refused(place, "PORT_TAKEN")


def assert_refused(place: LegPlace, code: str) -> None:
    ended = place.exit()
    assert ended.cause is StopCause.REFUSED
    assert codes_of(ended.problems) == [code]
    assert not place.files.server_log.exists()
    assert not place.files.postflight.exists()
    place.assert_closed()


def test_an_order_outside_its_leg_is_refused(place: LegPlace) -> None:
    other = place.root / "elsewhere"
    other.mkdir()
    order = place.order(paths=place.order().paths.model_copy(update={"leg": str(other)}))
    with RunningLeg.start(place, order) as leg:
        assert leg.wait() == 3
        assert "[PREFLIGHT]" in leg.errors()
    assert not list(other.iterdir())
