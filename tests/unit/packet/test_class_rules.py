import json

import pytest

from labctl.codes import Code
from labctl.engines.catalogue import vocabulary_for
from labctl.errors import FreezeRefused
from labctl.packet.class_rules import refuse_unfit_class
from labctl.packet.contents import EndpointSubject
from tests.fakes.packets import make_packet

VOCABULARY = vocabulary_for("vllm", "0.32.0")


def subject(**changes: object) -> EndpointSubject:
    packet = make_packet(preregistration=changes)
    return EndpointSubject("real", "registered", packet.preregistration, packet.host, b"", ())


def complaints(said: EndpointSubject) -> tuple[str, ...]:
    try:
        refuse_unfit_class(said, VOCABULARY)
    except FreezeRefused as refused:
        return tuple(f"{problem.code} {problem.where}" for problem in refused.problems)
    return ()


def test_an_option_that_makes_a_record_meaningless_refuses_the_freeze_in_each_arm() -> None:
    said = subject(**{"class": "record", "service": {"command": ["{python}", "--enable-prefix-caching"]}})
    assert complaints(said) == (f"{Code.RULE} service, arm A", f"{Code.RULE} service, arm B")


def test_an_option_of_one_arm_is_found_there() -> None:
    said = subject(**{"class": "record", "treatment": {"candidate": '{"method":"suffix"}'}})
    assert complaints(said) == (f"{Code.RULE} service, arm B",)


def test_other_classes_and_other_options_are_fit() -> None:
    assert complaints(subject(service={"command": ["{python}", "--enable-prefix-caching"]})) == ()
    assert complaints(subject(**{"class": "record"})) == ()


@pytest.mark.parametrize("name", ["exploratory", "comparison", "calibration", "record"])
@pytest.mark.parametrize("method", ["synthetic", "fly"])
def test_drafts_that_nobody_verifies_are_refused_in_every_class(name: str, method: str) -> None:
    candidate = json.dumps({"method": "ngram", "rejection_sample_method": method})
    said = subject(**{"class": name, "treatment": {"candidate": candidate}})
    assert complaints(said) == (f"{Code.RULE} service, arm B",)
