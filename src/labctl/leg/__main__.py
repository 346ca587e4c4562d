"""`python -I -P -m labctl.leg ORDER`: run one leg.

Standard input is the lifeline: a byte a second, or the leg ends. Standard output holds progress lines. The exit status
is 0 for a completed leg, 3 when nothing was started, 4 for a failed leg; the records in the leg's folder say more.
"""

import os
import sys
from pathlib import Path

from labctl.clock import SystemClock
from labctl.errors import LabctlError, LegFailed, Refused
from labctl.leg.claim import OpenedOrder, open_order
from labctl.leg.closing import exit_status
from labctl.leg.guard import stand_guard
from labctl.leg.interruption import Interruption
from labctl.leg.progress import Progress
from labctl.leg.run import run_leg

USAGE = 2


def main(arguments: list[str]) -> int:
    """Read the order, and run it behind a guard."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -I -P -m labctl.leg ORDER\n")
        return USAGE
    try:
        opened = open_order(Path(arguments[0]))
    except LabctlError as error:
        sys.stderr.write(f"{error}\n")
        return Refused.exit_code
    return stand_guard(lambda: _work(opened), opened.order.limits.silence_s)


def _work(opened: OpenedOrder) -> int:
    interruption = Interruption()
    interruption.install()
    try:
        return exit_status(run_leg(opened, interruption, Progress(), SystemClock()))
    except LabctlError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code if isinstance(error, Refused) else LegFailed.exit_code
    finally:
        sys.stderr.flush()


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # taking the interpreter down would keep the controller waiting, and nothing is left to be done
