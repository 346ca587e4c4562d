"""Step 6, measure: from a work order to raw records in the leg's folder."""

import traceback
from typing import assert_never

from labctl.clock import Clock
from labctl.errors import LabctlError
from labctl.leg.claim import OpenedOrder, claim_leg, require_card_place, require_place
from labctl.leg.closing import close_leg, crash, leg_exit, own_log
from labctl.leg.component import ComponentLeg, run_component_leg
from labctl.leg.endpoint import EndpointStart, run_endpoint_start
from labctl.leg.interruption import Interruption
from labctl.leg.probe import ProbeLeg, run_probe_leg
from labctl.leg.progress import Progress
from labctl.records.any_order import AnyOrder
from labctl.records.card_order import ComponentOrder, ProbeOrder
from labctl.records.leg import LegExit
from labctl.records.order import WorkOrder

AnyLeg = EndpointStart | ComponentLeg | ProbeLeg


def run_leg(opened: OpenedOrder, interruption: Interruption, progress: Progress, clock: Clock) -> LegExit:
    """Claim the leg, run it, and close it; a failed leg closes too, and says why.

    Raises:
        Refused: another process has claimed the leg (ALREADY_STARTED); nothing was written.
        BrokenEvidence: the claim or the closing records could not be written.
    """
    claim_leg(opened, clock)
    start = _leg_of(opened.order, interruption, progress, clock)
    ending: LabctlError | None = None
    with own_log(opened.leg):
        try:
            _run_kind(start)
        except LabctlError as error:
            ending = error
        except Exception as error:  # noqa: BLE001 (the leg's entry: a fault of ours must still leave a closed leg)
            traceback.print_exc()
            ending = crash(error)
    closed = leg_exit(opened.order.leg, ending, start.rows_completed, clock)
    close_leg(opened.leg, closed)
    return closed


def _leg_of(order: AnyOrder, interruption: Interruption, progress: Progress, clock: Clock) -> AnyLeg:
    match order:
        case WorkOrder():
            return EndpointStart(order, interruption, progress, clock)
        case ComponentOrder():
            return ComponentLeg(order, interruption, progress, clock)
        case ProbeOrder():
            return ProbeLeg(order, interruption, progress, clock)
        case _:
            assert_never(order)


def _run_kind(leg: AnyLeg) -> None:
    match leg:
        case EndpointStart():
            require_place(leg.order)
            run_endpoint_start(leg)
        case ComponentLeg():
            require_card_place(leg.order)
            run_component_leg(leg)
        case ProbeLeg():
            require_card_place(leg.order)
            run_probe_leg(leg)
        case _:
            assert_never(leg)
