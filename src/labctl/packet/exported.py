"""Where each pinned file of a worker lies in the folder that a leg runs it from; pure."""

from pathlib import Path

WORKER_ROLE = "worker.py"
MODULE = "component-"
FILE = "file-"


def module_role(name: str) -> str:
    """The role of one module of the worker side."""
    return f"{MODULE}{name}"


def file_role(name: str) -> str:
    """The role of one small file that the worker may read."""
    return f"{FILE}{name}"


def is_exported(role: str) -> bool:
    """Whether a pinned file is one that a leg runs or that its worker reads."""
    return role == WORKER_ROLE or role.startswith((MODULE, FILE))


def exported_path(code: Path, role: str) -> Path:
    """The path of an exported file, by its role in the packet."""
    if role.startswith(MODULE):
        return code / "labctl" / "component" / role.removeprefix(MODULE)
    if role.startswith(FILE):
        return code / "files" / role.removeprefix(FILE)
    return code / role
