"""The transition table: the one legal path, and every illegal step."""

import itertools

import pytest

from labctl.protocol import TABLE, Event, Progress, State

ABBA = ("A1", "B1", "B2", "A2")


def _walk(progress: Progress, steps: list[tuple[Event, str | None]]) -> Progress:
    for event, leg in steps:
        progress = progress.advance(event, leg)
    return progress


def _leg(name: str) -> list[tuple[Event, str | None]]:
    return [(Event.LEG_STARTED, name), (Event.LEG_CLOSED, name)]


WHOLE: list[tuple[Event, str | None]] = [
    (Event.PREFLIGHT_RECORDED, None),
    *_leg("A1"),
    *_leg("B1"),
    (Event.PHASE_ANSWERED, None),
    *_leg("B2"),
    *_leg("A2"),
    (Event.RUN_CLOSED, None),
]


def test_the_order_a1_b1_b2_a2_with_a_phase_stop_runs_through() -> None:
    assert _walk(Progress(ABBA, has_phase_stop=True), WHOLE).state is State.CLOSED


def test_a_phase_stop_closes_the_run_after_the_first_pair() -> None:
    steps = [*WHOLE[:5], (Event.PHASE_STOPPED, None), (Event.RUN_CLOSED, None)]
    assert _walk(Progress(ABBA, has_phase_stop=True), steps).state is State.CLOSED


def test_without_a_registered_stop_no_phase_is_answered() -> None:
    progress = _walk(Progress(ABBA, has_phase_stop=False), WHOLE[:5])
    with pytest.raises(RuntimeError, match="not due"):
        progress.advance(Event.PHASE_ANSWERED, None)


@pytest.mark.parametrize("cut", range(len(WHOLE)))
def test_leaving_out_any_step_is_refused(cut: int) -> None:
    steps = WHOLE[:cut] + WHOLE[cut + 1 :]
    if cut == len(WHOLE) - 1:
        assert _walk(Progress(ABBA, has_phase_stop=True), steps).state is not State.CLOSED
        return
    with pytest.raises(RuntimeError):
        _walk(Progress(ABBA, has_phase_stop=True), steps)


@pytest.mark.parametrize("at", range(len(WHOLE)))
def test_repeating_any_step_is_refused(at: int) -> None:
    progress = _walk(Progress(ABBA, has_phase_stop=True), WHOLE[: at + 1])
    with pytest.raises(RuntimeError):
        progress.advance(*WHOLE[at])


@pytest.mark.parametrize(
    ("state", "event"), [pair for pair in itertools.product(State, Event) if pair not in TABLE], ids=str
)
def test_every_transition_off_the_table_is_refused(state: State, event: Event) -> None:
    with pytest.raises(RuntimeError, match="illegal in state"):
        Progress(ABBA, has_phase_stop=True, state=state).advance(event, "A1")


@pytest.mark.parametrize("wrong", ["B1", "A2", "A3", None])
def test_a_leg_out_of_order_is_refused(wrong: str | None) -> None:
    progress = Progress(ABBA, has_phase_stop=True).advance(Event.PREFLIGHT_RECORDED, None)
    with pytest.raises(RuntimeError, match="wants A1"):
        progress.advance(Event.LEG_STARTED, wrong)


@pytest.mark.parametrize("taken", range(len(WHOLE) - 1))
def test_a_run_can_be_aborted_from_everywhere_but_the_end(taken: int) -> None:
    progress = _walk(Progress(ABBA, has_phase_stop=True), WHOLE[:taken])
    assert progress.advance(Event.RUN_ABORTED, None).state is State.CLOSED


def test_nothing_follows_a_closed_run() -> None:
    progress = _walk(Progress(ABBA, has_phase_stop=True), WHOLE)
    for event in Event:
        with pytest.raises(RuntimeError):
            progress.advance(event, None)
