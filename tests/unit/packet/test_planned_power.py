import json
from dataclasses import replace
from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import FreezeRefused
from labctl.packet.contents import EndpointSubject, PinnedInput
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.packet.model import Packet, PinnedFile, PlannedPower
from labctl.packet.planned_power import plan_power, power_with, refuse_underpowered, true_limits
from labctl.packet.power_lines import power_lines
from labctl.prereg.model import Preregistration
from labctl.prereg.noise import NoiseRecord
from tests.fakes.lab_repository import LabRepository
from tests.fakes.packets import make_packet

BENCH = (Path(__file__).parents[2] / "fixtures" / "prereg" / "noise" / "bench.json").read_bytes()
FOUR, EIGHT = ["A1", "B1", "B2", "A2"], ["A1", "B1", "B2", "A2", "B3", "A3", "A4", "B4"]


def subject(
    effect: str, *, order: list[str] = FOUR, power: str = "0.8", campaign_class: str = "record"
) -> EndpointSubject:
    stated = {"noise_record": "noise/n.json", "planned_effect_percent": effect, "alpha": "0.05", "power": power}
    said = {"class": campaign_class, "power": stated, "schedule": {"order": order}}
    packet = make_packet(preregistration=said)
    assert isinstance(packet.preregistration, Preregistration)
    file = PinnedFile(role="noise.json", path="campaigns/noise/n.json", sha256="0" * 64, bytes=len(BENCH))
    return EndpointSubject("real", "registered", packet.preregistration, packet.host, b"", (PinnedInput(file, BENCH),))


def planned(said: EndpointSubject) -> PlannedPower:
    found = plan_power(said)
    assert found is not None
    return found


def test_power_is_planned_with_the_upper_limit_of_the_spread() -> None:
    assert planned(subject("2")).start_sd_percent == json.loads(BENCH)["start_sd_planning_percent"]


@pytest.mark.parametrize("name", ["lower", "upper", "planning"])
def test_limits_that_are_not_those_of_the_starts_are_refused(name: str) -> None:
    noise = NoiseRecord.from_json(BENCH, "noise")
    forged = noise.model_copy(update={f"start_sd_{name}_percent": noise.start_sd_percent})
    with pytest.raises(FreezeRefused, match=f"start_sd_{name}_percent"):
        true_limits(forged)
    assert true_limits(noise).sd == pytest.approx(0.00176, rel=1e-3)


def test_a_large_effect_is_seen_with_four_starts() -> None:
    said = subject("2")
    found = planned(said)
    assert float(found.power) > 0.99
    assert found.starts == (2, 2)
    assert float(found.minimum_effect_percent or "0") == pytest.approx(3.98 * 0.2385, rel=0.01)
    refuse_underpowered(said, found)


def test_a_record_that_could_see_nothing_is_refused_with_the_starts_that_would_do() -> None:
    said = subject("0.5")
    with pytest.raises(FreezeRefused) as refused:
        refuse_underpowered(said, planned(said))
    (problem,) = refused.value.problems
    assert problem.code is Code.RULE
    assert "4 starts of each arm (8 in all)" in problem.do
    enough = subject("0.5", order=EIGHT)
    refuse_underpowered(enough, planned(enough))


def test_less_than_four_in_five_never_does_whatever_is_registered() -> None:
    said = subject("0.85", power="0.3")
    assert 0.3 < float(planned(said).power) < 0.8
    with pytest.raises(FreezeRefused):
        refuse_underpowered(said, planned(said))


def test_a_higher_registered_power_is_what_must_be_met() -> None:
    said = subject("1", power="0.95")
    assert 0.8 < float(planned(said).power) < 0.95
    with pytest.raises(FreezeRefused):
        refuse_underpowered(said, planned(said))


def test_an_effect_that_must_exceed_a_margin_is_seen_less_often() -> None:
    plain = subject("2")
    gates = [gate.model_dump(mode="json") for gate in plain.preregistration.gates]
    claimed = [*gates, {"kind": "effect", "margin_percent": "1.9"}]
    document = plain.preregistration.model_dump(mode="json", by_alias=True) | {"gates": claimed}
    said = replace(plain, preregistration=Preregistration.model_validate_json(json.dumps(document)))
    assert float(planned(said).power) < 0.1
    smallest = planned(said).minimum_effect_percent, planned(plain).minimum_effect_percent
    ratio = (1 + float(smallest[0] or "0") / 100) / (1 + float(smallest[1] or "0") / 100)
    assert ratio == pytest.approx(1.019)
    with pytest.raises(FreezeRefused):
        refuse_underpowered(said, planned(said))


@pytest.mark.parametrize("alpha", ["0.000000000000000000000000000001", "0.000000000000001"])
def test_an_error_rate_that_no_campaign_can_hold_is_refused_and_breaks_nothing(alpha: str) -> None:
    said = subject("2")
    assert said.preregistration.power is not None
    strict = said.preregistration.power.model_copy(update={"alpha": alpha})
    noise = NoiseRecord.from_json(BENCH, "noise")
    found = power_with(noise, strict, said.preregistration.schedule.order)
    assert (float(found.power), found.minimum_effect_percent) == (0, None)
    with pytest.raises(FreezeRefused):
        refuse_underpowered(said, found)


def test_a_comparison_is_held_to_it_too_and_exploring_goes_on() -> None:
    compared, explored = (subject("0.5", campaign_class=name) for name in ("comparison", "exploratory"))
    with pytest.raises(FreezeRefused):
        refuse_underpowered(compared, planned(compared))
    refuse_underpowered(explored, planned(explored))


@pytest.mark.parametrize(("effect", "told"), [("0.3", "register 10 starts"), ("0.2", "an order holds 24 in all")])
def test_starts_that_no_order_holds_are_not_asked_for(effect: str, told: str) -> None:
    said = subject(effect)
    assert ((planned(said).starts_needed or 0) > 12) is (effect == "0.2")
    with pytest.raises(FreezeRefused, match=told):
        refuse_underpowered(said, planned(said))


def test_an_effect_that_no_number_of_starts_would_show_is_told_so() -> None:
    said = subject("0.0001")
    assert planned(said).starts_needed is None
    with pytest.raises(FreezeRefused, match="no number of starts"):
        refuse_underpowered(said, planned(said))


def test_a_campaign_that_states_no_power_has_none_and_its_packet_keeps_its_form() -> None:
    packet = make_packet()
    assert isinstance(packet.preregistration, Preregistration)
    assert plan_power(EndpointSubject("real", "registered", packet.preregistration, packet.host, b"", ())) is None
    assert b"planned_power" not in packet.canonical()


def test_a_packet_keeps_what_was_planned() -> None:
    document = make_packet().model_dump(mode="json") | {"planned_power": planned(subject("2")).model_dump(mode="json")}
    packet = Packet.model_validate_json(json.dumps(document))
    assert packet.planned_power == planned(subject("2"))


def compared(lab: LabRepository, effect: str) -> None:
    """Register a comparison with a power, and commit it."""
    lab.write("campaigns/noise/bench.json", BENCH.decode())
    lab.write("campaigns/keys/allowed_signers", "reviewer@example.org ssh-ed25519 AAAA\n")
    lab.edit_campaign("class: exploratory", "class: comparison")
    lab.edit_campaign("  - {kind: cross_leg_exact}\n", "  - {kind: cross_leg_exact}\n  - {kind: exact_within_arms}\n")
    signed = "reviews: {required: 1, signatures: ssh, allowed_signers: keys/allowed_signers}"
    power = (
        f'power: {{noise_record: noise/bench.json, planned_effect_percent: "{effect}", alpha: "0.05", power: "0.8"}}'
    )
    lab.edit_campaign("reviews: {required: 0, signatures: none}", f"{power}\n{signed}")
    lab.commit("Compare")


def test_freezing_refuses_a_claim_without_power_and_writes_nothing(tmp_path: Path) -> None:
    lab = LabRepository.create(tmp_path / "lab")
    compared(lab, "0.5")
    with pytest.raises(FreezeRefused, match="4 starts of each arm") as refused:
        freeze_packet(FreezeRequest(lab.campaign))
    assert refused.value.exit_code == 3
    assert not (lab.top / ".labctl" / "authorization" / "packets").exists()


def test_freezing_keeps_what_was_computed_in_the_packet(tmp_path: Path) -> None:
    lab = LabRepository.create(tmp_path / "lab")
    compared(lab, "2")
    packet = freeze_packet(FreezeRequest(lab.campaign))
    assert packet.planned_power is not None
    assert packet.planned_power.starts == (2, 2)
    assert packet.file("noise.json") is not None
    (line,) = power_lines(packet)
    assert line.endswith("with 2 and 2 starts at SD 0.238485206 %")
