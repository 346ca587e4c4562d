"""Whether the machine's CPUs are idle enough for a campaign."""

from labctl.campaign.look import Look
from labctl.clock import Clock
from labctl.codes import Code
from labctl.host.idle import cpu_busy_percent
from labctl.prereg.host_profile import Idle


def idle_look(idle: Idle, clock: Clock) -> Look:
    """The load over the window that the host profile sets."""
    if idle.window_s == 0:
        return Look("idle", Code.HOST_BUSY, "an idle host", "not measured, as registered", is_met=True)
    busy = cpu_busy_percent(idle.window_s, clock)
    return Look(
        "idle",
        Code.HOST_BUSY,
        f"at most {idle.max_cpu_percent} % of all CPUs busy",
        f"{busy:.1f} %",
        is_met=busy <= idle.max_cpu_percent,
        do="end what else runs, or wait",
    )
