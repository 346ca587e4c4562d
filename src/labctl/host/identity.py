"""What the machine is, for `host/identity.json`."""

import os
import platform
from importlib import metadata
from pathlib import Path

from labctl.digest import sha256_hex
from labctl.host.boot import SYSTEM, boot_id, machine_id_sha256
from labctl.records.run import HostIdentity

CHANGING = ("cpu MHz", "bogomips", "BogoMIPS")
CLOCKSOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"
GOVERNORS = "sys/devices/system/cpu"


def read_host_identity(system: Path = SYSTEM) -> HostIdentity:
    """The machine, its boot, and the environment that labctl itself runs in.

    Raises:
        PreflightFailed: the machine cannot be told from another.
    """
    names = os.uname()
    cpuinfo = _text(system / "proc/cpuinfo")
    return HostIdentity(
        machine_id_sha256=machine_id_sha256(system),
        boot_id=boot_id(system),
        hostname=names.nodename,
        kernel=f"{names.sysname} {names.release} {names.version}",
        architecture=names.machine,
        cpu_model=_field(cpuinfo, "model name") or names.machine,
        cpu_count=os.cpu_count() or 1,
        cpuinfo_sha256=sha256_hex(_lasting(cpuinfo).encode()),
        memory_bytes=_memory_bytes(_text(system / "proc/meminfo")),
        clocksource=_text(system / CLOCKSOURCE).strip(),
        governors=_governors(system / GOVERNORS),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        distributions=_distributions(),
    )


def _lasting(cpuinfo: str) -> str:
    return "".join(line for line in cpuinfo.splitlines(keepends=True) if not line.startswith(CHANGING))


def _field(text: str, name: str) -> str:
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _memory_bytes(meminfo: str) -> int:
    return int((_field(meminfo, "MemTotal") or "0 kB").split()[0]) * 1024


def _governors(cpus: Path) -> tuple[str, ...]:
    found = {_text(path).strip() for path in cpus.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return tuple(sorted(found - {""}))


def _distributions() -> tuple[str, ...]:
    return tuple(sorted({f"{found.metadata['Name']}=={found.version}" for found in metadata.distributions()}))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
