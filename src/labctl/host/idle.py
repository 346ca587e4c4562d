"""How busy the machine is: over a window before the first start, and at a moment between rows."""

import re
from collections.abc import Iterable
from pathlib import Path

from labctl.clock import Clock
from labctl.host.boot import SYSTEM
from labctl.host.process_facts import resident_bytes
from labctl.host.processes import ProcessIdentity
from labctl.records.leg import Telemetry

IDLE_COLUMNS = (3, 4)  # idle and iowait
GUEST_COLUMNS = 8  # guest time, from here on, is counted in user time already


def cpu_busy_percent(window_s: float, clock: Clock, system: Path = SYSTEM) -> float:
    """The share of all CPUs' time, in percent, that was not idle over a window that starts now."""
    total_before, idle_before = _cpu_ticks(system)
    clock.sleep(window_s)
    total_after, idle_after = _cpu_ticks(system)
    total = total_after - total_before
    return 0.0 if total <= 0 else 100.0 * (total - (idle_after - idle_before)) / total


def sample_telemetry(row: int, processes: Iterable[ProcessIdentity], clock: Clock, system: Path = SYSTEM) -> Telemetry:
    """The machine's load at this moment.

    Args:
        row: the row that has just ended; 0 before the first.
        processes: the processes of the start.
        clock: the clock.
        system: the root of the file system that describes the machine.
    """
    total, idle = _cpu_ticks(system)
    load_text = (system / "proc/loadavg").read_text("ascii").split()[0]
    whole, _, fraction = load_text.partition(".")
    return Telemetry(
        row=row,
        mono_ns=clock.monotonic_ns(),
        load_1m_milli=int(whole) * 1000 + int(f"{fraction:0<3}"[:3]),
        cpu_ticks_total=total,
        cpu_ticks_idle=idle,
        memory_available_bytes=_available_bytes(system),
        server_rss_bytes=resident_bytes(processes),
        cpu_frequency_mhz=_frequencies_mhz(system),
    )


def _cpu_ticks(system: Path) -> tuple[int, int]:
    with (system / "proc/stat").open("rb") as stream:
        columns = [int(text) for text in stream.readline().split()[1:]]
    return sum(columns[:GUEST_COLUMNS]), sum(columns[column] for column in IDLE_COLUMNS)


def _available_bytes(system: Path) -> int:
    found = re.search(rb"^MemAvailable:\s+([0-9]+) kB$", (system / "proc/meminfo").read_bytes(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _frequencies_mhz(system: Path) -> tuple[int, ...]:
    places = (system / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
    by_cpu = {int(place.parts[-3].removeprefix("cpu")): place for place in places}
    return tuple(int(by_cpu[cpu].read_text("ascii")) // 1000 for cpu in sorted(by_cpu))
