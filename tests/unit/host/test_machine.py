"""The machine as a tree of small files, and the real one."""

import os
import platform
from pathlib import Path

import pytest

from labctl.clock import SystemClock
from labctl.digest import sha256_hex
from labctl.errors import PreflightFailed
from labctl.host.boot import boot_id, machine_id_sha256
from labctl.host.identity import read_host_identity
from labctl.host.idle import cpu_busy_percent, sample_telemetry
from labctl.host.processes import own_identity

STAT = "cpu  {user} 0 0 {idle} {iowait} 0 0 0 {guest} 0\ncpu0 1 1 1 1\n"
CPUINFO = "processor\t: 0\nmodel name\t: A Good CPU\ncpu MHz\t\t: {mhz}\nbogomips\t: 1.0\nflags\t\t: avx2\n"


class FakeClock(SystemClock):
    """A clock whose sleep changes the machine."""

    def __init__(self, system: Path, after: str) -> None:
        self._system = system
        self._after = after
        self.slept_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        write(self._system, "proc/stat", self._after)


def write(system: Path, name: str, text: str) -> None:
    (system / name).parent.mkdir(parents=True, exist_ok=True)
    (system / name).write_text(text)


@pytest.fixture
def system(tmp_path: Path) -> Path:
    write(tmp_path, "proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n")
    write(tmp_path, "proc/cpuinfo", CPUINFO.format(mhz="2000.0"))
    write(tmp_path, "proc/meminfo", "MemTotal:       1024 kB\nMemAvailable:    512 kB\n")
    write(tmp_path, "proc/loadavg", "1.07 0.50 0.25 1/100 4242\n")
    write(tmp_path, "proc/stat", STAT.format(user=100, idle=800, iowait=100, guest=50))
    write(tmp_path, "etc/machine-id", "0123456789abcdef\n")
    return tmp_path


def test_the_machine_id_is_a_digest_of_the_first_id_that_is_there(system: Path) -> None:
    assert machine_id_sha256(system) == sha256_hex(b"0123456789abcdef")
    write(system, "etc/machine-id", "")
    write(system, "sys/class/dmi/id/product_uuid", "uuid\n")
    assert machine_id_sha256(system) == sha256_hex(b"uuid")


def test_a_machine_without_an_id_is_told_by_boot_and_name(system: Path) -> None:
    (system / "etc/machine-id").unlink()
    known = f"{boot_id(system)}\n{os.uname().nodename}"
    assert machine_id_sha256(system) == sha256_hex(known.encode())


def test_a_machine_that_tells_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreflightFailed, match="boot_id"):
        machine_id_sha256(tmp_path)


def test_this_machine_is_the_same_each_time() -> None:
    assert machine_id_sha256() == machine_id_sha256()
    assert boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_what_changes_while_running_does_not_change_the_identity(system: Path) -> None:
    before = read_host_identity(system)
    write(system, "proc/cpuinfo", CPUINFO.format(mhz="3999.9"))
    assert read_host_identity(system) == before
    write(system, "proc/cpuinfo", CPUINFO.format(mhz="2000.0").replace("avx2", "sse"))
    assert read_host_identity(system).cpuinfo_sha256 != before.cpuinfo_sha256


def test_the_identity_says_what_the_files_say(system: Path) -> None:
    write(system, "sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
    for cpu, governor in enumerate(("schedutil", "performance", "schedutil")):
        write(system, f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", f"{governor}\n")
    identity = read_host_identity(system)
    assert (identity.cpu_model, identity.memory_bytes) == ("A Good CPU", 1 << 20)
    assert (identity.clocksource, identity.governors) == ("tsc", ("performance", "schedutil"))
    assert identity.python == f"CPython {platform.python_version()}"
    assert any(name.startswith("pydantic==") for name in identity.distributions)
    assert identity.distributions == tuple(sorted(identity.distributions))


def test_busy_is_what_was_not_idle_in_the_window(system: Path) -> None:
    # 100 ticks pass: 60 idle, 15 waiting for disks, 25 busy; guest time is part of user time and not counted twice.
    clock = FakeClock(system, STAT.format(user=125, idle=860, iowait=115, guest=70))
    assert cpu_busy_percent(2.5, clock, system) == pytest.approx(25.0)
    assert clock.slept_s == 2.5


def test_a_window_without_a_tick_is_not_busy(system: Path) -> None:
    clock = FakeClock(system, STAT.format(user=100, idle=800, iowait=100, guest=50))
    assert cpu_busy_percent(0, clock, system) == 0.0


def test_telemetry_is_read_from_the_machine(system: Path) -> None:
    for cpu, khz in ((10, 1_800_000), (2, 2_400_999)):
        write(system, f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq", f"{khz}\n")
    sample = sample_telemetry(3, [own_identity()], SystemClock(), system)
    assert (sample.row, sample.load_1m_milli) == (3, 1070)
    assert (sample.cpu_ticks_total, sample.cpu_ticks_idle) == (1000, 900)
    assert sample.memory_available_bytes == 512 * 1024
    assert sample.cpu_frequency_mhz == (2400, 1800)
    assert sample.server_rss_bytes > 1 << 20


def test_the_real_machine_can_be_sampled() -> None:
    sample = sample_telemetry(0, [], SystemClock())
    assert sample.cpu_ticks_total > sample.cpu_ticks_idle > 0
    assert sample.server_rss_bytes == 0
