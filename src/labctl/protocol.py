"""The campaign protocol: which step may follow which.

Theory of operation. A run is a sequence of journal entries. Each entry names one event; the table below says, for each
state, which events may happen and where they lead. What is absent is illegal. The file does not know which role it
plays: the controller drives the table while it acts, and an illegal step is a `RuntimeError`, our own bug; the
analyzer replays the journal of a sealed run through the same table, and an illegal step is evidence that is broken. The
order of legs is part of the protocol: a leg may start only when it is the next one of the packet's order.

```
OPENED ── preflight_recorded ──> READY ── leg_started ──> LEG_RUNNING ── leg_closed ──> READY
READY ── phase_answered ──> READY            (only where the order registers a phase stop, after its first pair)
READY ── phase_stopped ──> STOPPED
READY, STOPPED ── run_closed ──> CLOSED      (READY only when every leg of the order is closed)
any but CLOSED ── run_aborted ──> CLOSED
```
"""

from dataclasses import dataclass, replace
from enum import StrEnum

FIRST_PAIR = 2


class State(StrEnum):
    """Where a run stands."""

    OPENED = "opened"
    READY = "ready"
    LEG_RUNNING = "leg_running"
    STOPPED = "stopped"
    CLOSED = "closed"


class Event(StrEnum):
    """What a journal entry says happened."""

    PREFLIGHT_RECORDED = "preflight_recorded"
    LEG_STARTED = "leg_started"
    LEG_CLOSED = "leg_closed"
    PHASE_ANSWERED = "phase_answered"
    PHASE_STOPPED = "phase_stopped"
    RUN_CLOSED = "run_closed"
    RUN_ABORTED = "run_aborted"


TABLE: dict[tuple[State, Event], State] = {
    (State.OPENED, Event.PREFLIGHT_RECORDED): State.READY,
    (State.READY, Event.LEG_STARTED): State.LEG_RUNNING,
    (State.LEG_RUNNING, Event.LEG_CLOSED): State.READY,
    (State.READY, Event.PHASE_ANSWERED): State.READY,
    (State.READY, Event.PHASE_STOPPED): State.STOPPED,
    (State.READY, Event.RUN_CLOSED): State.CLOSED,
    (State.STOPPED, Event.RUN_CLOSED): State.CLOSED,
    (State.OPENED, Event.RUN_ABORTED): State.CLOSED,
    (State.READY, Event.RUN_ABORTED): State.CLOSED,
    (State.LEG_RUNNING, Event.RUN_ABORTED): State.CLOSED,
    (State.STOPPED, Event.RUN_ABORTED): State.CLOSED,
}


@dataclass(frozen=True, slots=True)
class Progress:
    """A state of the protocol for one order of legs; `advance` gives the next."""

    order: tuple[str, ...]
    has_phase_stop: bool
    state: State = State.OPENED
    closed_legs: int = 0
    phase_answers: int = 0

    def advance(self, event: Event, leg: str | None) -> "Progress":
        """The state after one event.

        Args:
            event: what happened.
            leg: the leg that it happened to, for `leg_started` and `leg_closed`; None otherwise.

        Raises:
            RuntimeError: the event is illegal here; the message says what was legal.
        """
        following = TABLE.get((self.state, event))
        if following is None:
            legal = sorted(known for state, known in TABLE if state is self.state)
            message = f"{event} is illegal in state {self.state}; legal: {', '.join(legal) or 'nothing'}"
            raise RuntimeError(message)
        fault = self._fault(event, leg)
        if fault:
            raise RuntimeError(fault)
        return replace(
            self,
            state=following,
            closed_legs=self.closed_legs + (event is Event.LEG_CLOSED),
            phase_answers=self.phase_answers + (event in (Event.PHASE_ANSWERED, Event.PHASE_STOPPED)),
        )

    def next_leg(self) -> str | None:
        """The leg that must come next, or None when all are closed."""
        return self.order[self.closed_legs] if self.closed_legs < len(self.order) else None

    def _fault(self, event: Event, leg: str | None) -> str | None:
        match event:
            case Event.LEG_STARTED | Event.LEG_CLOSED:
                return self._leg_fault(event, leg)
            case Event.PHASE_ANSWERED | Event.PHASE_STOPPED:
                is_due = self.has_phase_stop and self.closed_legs == FIRST_PAIR and self.phase_answers == 0
                return None if is_due else f"{event} is not due after {self.closed_legs} legs"
            case Event.RUN_CLOSED:
                is_whole = self.state is State.STOPPED or self.next_leg() is None
                return None if is_whole else f"{event} before leg {self.next_leg()}"
            case Event.PREFLIGHT_RECORDED | Event.RUN_ABORTED:
                return None

    def _leg_fault(self, event: Event, leg: str | None) -> str | None:
        if leg != self.next_leg():
            return f"{event} of {leg}, where the order wants {self.next_leg()}"
        is_phase_due = self.has_phase_stop and self.closed_legs == FIRST_PAIR and self.phase_answers == 0
        if event is Event.LEG_STARTED and is_phase_due:
            return f"{event} of {leg} before the phase was answered"
        return None
