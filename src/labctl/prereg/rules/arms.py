"""Rules for the treatment: one difference, a real one, that stands nowhere else and can be proved."""

from collections.abc import Iterator
from typing import assert_never

from labctl.prereg.finding import Anchor, Finding
from labctl.prereg.model import Arm, CampaignClass, Preregistration
from labctl.prereg.rules.patterns import pattern_findings
from labctl.prereg.treatment_kinds import (
    ArgumentTreatment,
    BinariesTreatment,
    CounterProof,
    EnvironmentTreatment,
    LogProof,
)


def arms_of(preregistration: Preregistration) -> set[Arm]:
    """The arms that the order holds."""
    return {Arm.of_leg(leg) for leg in preregistration.schedule.order}


def treatment_iff_candidate(preregistration: Preregistration) -> Iterator[Finding]:
    """A treatment is needed exactly where the order has a candidate."""
    has_candidate = Arm.CANDIDATE in arms_of(preregistration)
    is_calibration = preregistration.campaign_class is CampaignClass.CALIBRATION  # its two labels name one service
    if has_candidate and preregistration.treatment is None and not is_calibration:
        yield Finding(("schedule", "order"), "a treatment for the candidate legs", "none", "add `treatment`")
    if not has_candidate and preregistration.treatment is not None:
        do = "add candidate legs to the order, or remove `treatment`"
        yield Finding(("treatment",), "no treatment, as no leg is a candidate", "a treatment", do, anchor=Anchor.KEY)


def arms_differ(preregistration: Preregistration) -> Iterator[Finding]:
    """Control and candidate are two settings."""
    treatment = preregistration.treatment
    if treatment is not None and treatment.control == treatment.candidate:
        yield Finding(("treatment", "candidate"), "a value other than the control's", "the same", "change one of them")


def treatment_stands_alone(preregistration: Preregistration) -> Iterator[Finding]:
    """What is treated is not set in the service as well."""
    treatment, service = preregistration.treatment, preregistration.service
    match treatment:
        case None:
            return
        case ArgumentTreatment():
            for index, part in enumerate(service.command):
                if part.partition("=")[0] == treatment.argument:
                    expected = f"{treatment.argument} in the treatment alone"
                    yield Finding(("service", "command", index), expected, part, "remove it here")
        case EnvironmentTreatment():
            if treatment.environment in service.environment:
                path = ("service", "environment", treatment.environment)
                expected = f"{treatment.environment} in the treatment alone"
                yield Finding(path, expected, "a value", "remove it here", anchor=Anchor.KEY)
        case BinariesTreatment():
            return  # its placeholder stands in the service, once
        case _:
            assert_never(treatment)


def proof_tells_the_arms_apart(preregistration: Preregistration) -> Iterator[Finding]:
    """A proof that both arms pass alike proves nothing."""
    if preregistration.treatment is None:
        return
    proof, path = preregistration.treatment.proof, ("treatment", "proof")
    if proof.control == proof.candidate:
        got = f"{proof.candidate} in both arms"
        yield Finding((*path, "candidate"), "a state other than the control's", got, "say what differs")
    match proof:
        case CounterProof():
            return
        case LogProof():
            yield from pattern_findings(path, ("log", "example"), (proof.log, proof.example))
        case _:
            assert_never(proof)


ARM_RULES = (treatment_iff_candidate, arms_differ, treatment_stands_alone, proof_tells_the_arms_apart)
