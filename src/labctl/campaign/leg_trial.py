"""The program of a leg, started once without an order: one that cannot start must not cost a packet."""

import subprocess
from pathlib import Path

from labctl.campaign.leg_process import LEG_ENVIRONMENT, leg_command
from labctl.campaign.look import Look
from labctl.codes import Code

ASKS_FOR_AN_ORDER = 2
LIMIT_S = 120


def leg_trial_look(scratch: Path) -> Look:
    """Whether the program of a leg starts; this also compiles its code into the campaign's own folder."""
    expected, do = "the program of a leg asks for its order", "install labctl again; nothing is started by it"
    try:
        said = subprocess.run(
            leg_command(scratch),
            cwd=scratch,
            env=LEG_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Look("leg_program", Code.PREFLIGHT, expected, str(error)[:400], is_met=False, do=do)
    if said.returncode == ASKS_FOR_AN_ORDER:
        return Look("leg_program", Code.PREFLIGHT, expected, "it does", is_met=True)
    last = (said.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing on its error output"])[-1]
    got = f"exit status {said.returncode}: {last[:400]}"
    return Look("leg_program", Code.PREFLIGHT, expected, got, is_met=False, do=do)
