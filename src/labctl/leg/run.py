"""Step 6, measure: from a work order to raw records in the leg's folder."""

import traceback
from typing import assert_never

from labctl.clock import Clock
from labctl.errors import LabctlError
from labctl.leg.claim import OpenedOrder, claim_leg, require_place
from labctl.leg.closing import close_leg, crash, leg_exit, own_log
from labctl.leg.endpoint import EndpointStart, run_endpoint_start
from labctl.leg.interruption import Interruption
from labctl.leg.progress import Progress
from labctl.records.leg import LegExit


def run_leg(opened: OpenedOrder, interruption: Interruption, progress: Progress, clock: Clock) -> LegExit:
    """Claim the leg, run it, and close it; a failed leg closes too, and says why.

    Raises:
        Refused: another process has claimed the leg (ALREADY_STARTED); nothing was written.
        BrokenEvidence: the claim or the closing records could not be written.
    """
    claim_leg(opened, clock)
    start = EndpointStart(opened.order, interruption, progress, clock)
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


def _run_kind(start: EndpointStart) -> None:
    match start.order.kind:
        case "endpoint":
            require_place(start.order)
            run_endpoint_start(start)
        case _:
            assert_never(start.order.kind)
