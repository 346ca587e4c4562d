from fractions import Fraction

from labctl.packet.lane import lane_alpha, lane_target, lucky_pass_chance
from labctl.prereg.model import Preregistration
from tests.fakes.packets import make_packet

EFFECT = {"kind": "effect", "confidence": "0.99"}
POWER = {"noise_record": "noise/n.json", "planned_effect_percent": "2", "alpha": "0.05", "power": "0.8"}


def registered(**changes: object) -> Preregistration:
    said = make_packet(preregistration=changes).preregistration
    assert isinstance(said, Preregistration)
    return said


def test_the_target_is_the_model_of_that_name_then_the_first_then_the_engine() -> None:
    models = [
        {"name": name, "manifest_sha256": digit * 64, "files": 1, "bytes": 1}
        for name, digit in (("x", "1"), ("target", "2"))
    ]
    assert lane_target(make_packet(models=models)) == f"model:{'2' * 64}"
    assert lane_target(make_packet(models=models[:1])) == f"model:{'1' * 64}"
    assert lane_target(make_packet()) == "engine:embedded"


def test_the_error_rate_is_the_effect_gates_else_the_larger_of_the_stated_one_and_the_orders_floor() -> None:
    assert lane_alpha(registered(gates=[EFFECT], power=POWER)) == Fraction(1, 100)
    eight = {"order": ["A1", "B1", "B2", "A2", "B3", "A3", "A4", "B4"]}
    assert lane_alpha(registered(power=POWER)) == Fraction(1, 6)
    assert lane_alpha(registered(power=POWER, schedule=eight)) == Fraction(1, 20)
    assert lane_alpha(registered()) == Fraction(1, 6)
    assert lane_alpha(registered(schedule={"order": ["A1", "B1"], "stop_after_first_pair": False})) == Fraction(1, 2)


def test_the_chance_of_a_lucky_pass_grows_with_every_attempt() -> None:
    assert lucky_pass_chance(Fraction(1, 20), 1) == Fraction(1, 20)
    assert lucky_pass_chance(Fraction(1, 20), 2) == Fraction(39, 400)
    assert 0.5 < lucky_pass_chance(Fraction(1, 20), 14) < 0.52
