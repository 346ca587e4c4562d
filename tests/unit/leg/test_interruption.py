import contextlib
import signal
from collections.abc import Iterator

import pytest

from labctl.codes import Code
from labctl.errors import LegInterrupted
from labctl.leg.interruption import LIFELINE_SIGNAL, REASONS, Interruption, ask_to_end_for_log


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    numbers = [*REASONS, signal.SIGHUP]
    before = {number: signal.getsignal(number) for number in numbers}
    installed = Interruption()
    installed.install()
    yield installed
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", list(REASONS))
def test_a_signal_ends_the_block_at_once_with_its_code(interruption: Interruption, number: signal.Signals) -> None:
    with pytest.raises(LegInterrupted) as caught, interruption.allowed():
        _fail_after(number)
    assert caught.value.codes == (REASONS[number][0],)


def _fail_after(number: signal.Signals) -> None:
    signal.raise_signal(number)
    pytest.fail("went on")


def test_a_signal_outside_waits_for_the_block(interruption: Interruption) -> None:
    signal.raise_signal(signal.SIGTERM)
    with pytest.raises(LegInterrupted), interruption.allowed():
        pytest.fail("entered")


def test_while_the_leg_closes_nothing_is_raised(interruption: Interruption) -> None:
    with pytest.raises(LegInterrupted), interruption.allowed():
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)


def test_the_first_reason_stays(interruption: Interruption) -> None:
    signal.raise_signal(LIFELINE_SIGNAL)
    signal.raise_signal(signal.SIGTERM)
    with pytest.raises(LegInterrupted) as caught:
        interruption.check()
    assert caught.value.codes == (Code.LIFELINE_CUT,)


def test_a_second_signal_does_not_disturb_what_the_first_one_set_going(interruption: Interruption) -> None:
    cleaned: list[str] = []
    with pytest.raises(LegInterrupted), interruption.allowed():
        _clean_up_under_signals(cleaned)
    assert cleaned == ["up"]


def _clean_up_under_signals(cleaned: list[str]) -> None:
    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.raise_signal(signal.SIGTERM)
        cleaned.append("up")


def test_an_exception_that_was_lost_is_met_at_the_end_of_the_block(interruption: Interruption) -> None:
    with pytest.raises(LegInterrupted), interruption.allowed():
        _lose(signal.SIGTERM)


def _lose(number: signal.Signals) -> None:
    with contextlib.suppress(LegInterrupted):  # as Python does in a finalizer
        signal.raise_signal(number)


def test_a_full_log_ends_the_block(interruption: Interruption) -> None:
    with pytest.raises(LegInterrupted) as caught, interruption.allowed():
        ask_to_end_for_log()
    assert caught.value.codes == (Code.LOG_LIMIT,)


def test_a_hangup_does_nothing(interruption: Interruption) -> None:
    went_on = False
    with interruption.allowed():
        signal.raise_signal(signal.SIGHUP)
        went_on = True
    assert went_on
