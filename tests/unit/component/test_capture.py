"""Calls under capture; on CPUs torch.jit's tracer captures."""

import pytest
import torch

from labctl.component.capture import Capture, look

CPU = torch.device("cpu")


def refuse() -> None:
    message = "not while capturing"
    raise RuntimeError(message)


def test_a_refusal_is_recorded_with_type_and_message() -> None:
    seen = Capture(CPU, (41, 7)).run(refuse)
    assert (seen["condition"], seen["exception"], seen["message"]) == (
        "jit_trace",
        "RuntimeError",
        "not while capturing",
    )
    looks = [(seen[when]["asked"], seen[when]["state"]) for when in ("before", "during", "after")]
    assert looks == [(False, False), (True, True), (False, False)]
    assert seen["canary"] == {"operand": 41, "captured": 42, "replay_operand": 7, "replayed": 8}


def test_a_call_that_is_not_refused_is_recorded_as_such() -> None:
    seen = Capture(CPU, (1, 2)).run(lambda: None)
    assert (seen["exception"], seen["message"]) == (None, None)


def test_what_is_no_refusal_goes_on() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Capture(CPU, (1, 2)).run(interrupt)


def test_nothing_is_captured_outside() -> None:
    assert look(CPU) == {"asked": False, "state": False}


def test_a_replaced_public_function_does_not_reach_the_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.jit, "is_tracing", lambda: True)
    assert look(CPU) == {"asked": True, "state": False}
