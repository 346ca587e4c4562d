"""What a process can read about itself, before and after it imports anything."""

import os
import platform
import sys
import warnings
from pathlib import Path


def python_version() -> str:
    """The implementation and version of the interpreter."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def start_ticks() -> int:
    """When this process started, in clock ticks since boot."""
    text = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    return int(text.rpartition(")")[2].split()[19])


def boot_id() -> str:
    """The boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def mapped_files() -> list[str]:
    """Files that are mapped into this process."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="backslashreplace").split("\n")
    return sorted({line[line.index("/") :] for line in lines if "/" in line})


def loaded_modules() -> list[str]:
    """Top-level modules that are loaded."""
    return sorted({name.partition(".")[0] for name in sys.modules})


def cpus() -> list[int]:
    """CPUs on which this process may run."""
    return sorted(os.sched_getaffinity(0))


def interpreter_flags() -> dict[str, int]:
    """The flags of the interpreter."""
    names = ("isolated", "ignore_environment", "no_user_site", "no_site", "dont_write_bytecode", "optimize", "dev_mode")
    return {name: int(getattr(sys.flags, name)) for name in names}


def channels() -> dict[str, object]:
    """Where warnings and output go."""
    show = warnings.showwarning
    return {
        "warning_filters": [_filter_line(entry) for entry in warnings.filters],
        "shows_warnings": f"{show.__module__}.{show.__qualname__}",
        "stdout": _open_file(1),
        "stderr": _open_file(2),
    }


def _filter_line(entry: tuple[object, ...]) -> str:
    return ":".join(str(getattr(part, "pattern", getattr(part, "__qualname__", part))) for part in entry)


def _open_file(descriptor: int) -> dict[str, object]:
    state = os.fstat(descriptor)
    target = os.fsencode(Path(f"/proc/self/fd/{descriptor}").readlink()).decode("utf-8", "backslashreplace")
    return {"target": target, "device": state.st_dev, "inode": state.st_ino}
