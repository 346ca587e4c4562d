from pathlib import Path

import pytest

from labctl.campaign.same_host import require_same_host
from labctl.codes import Code
from labctl.errors import RunFailed
from labctl.host.identity import read_host_identity
from labctl.rundir import RunPaths

FILES = {
    "proc/sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n",
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: A Good CPU\ncpu MHz\t\t: 2000\nflags\t\t: avx2\n",
    "proc/meminfo": "MemTotal:       1024 kB\n",
    "etc/machine-id": "0123456789abcdef\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
}


@pytest.fixture
def system(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def paths(system: Path) -> RunPaths:
    paths = RunPaths(system / "run")
    paths.host.mkdir(parents=True)
    (paths.host / "identity.json").write_bytes(read_host_identity(system).canonical())
    return paths


def test_a_host_that_stays_as_it_was_is_fine(paths: RunPaths, system: Path) -> None:
    (system / "proc/cpuinfo").write_text(FILES["proc/cpuinfo"].replace("2000", "3900"))
    (system / "proc/meminfo").write_text("MemTotal:       1000 kB\n")
    require_same_host(paths, system)
    assert read_host_identity(system).memory_bytes == 1000 * 1024


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("proc/sys/kernel/random/boot_id", "22222222-2222-3333-4444-555555555555\n", "host boot_id"),
        ("etc/machine-id", "fedcba9876543210\n", "host machine_id_sha256"),
        ("proc/cpuinfo", FILES["proc/cpuinfo"].replace("avx2", "avx512"), "host cpuinfo_sha256"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n", "host clocksource"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n", "host governors"),
    ],
)
def test_a_host_that_changed_ends_the_run(paths: RunPaths, system: Path, name: str, text: str, where: str) -> None:
    (system / name).write_text(text)
    with pytest.raises(RunFailed) as caught:
        require_same_host(paths, system)
    assert [(problem.code, problem.where) for problem in caught.value.problems] == [(Code.WRONG_MACHINE, where)]
    assert caught.value.exit_code == 4
