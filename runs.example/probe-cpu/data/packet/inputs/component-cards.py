"""The card and the software as torch shows them."""

import importlib
from typing import Any

import torch

from labctl.component import process_facts
from labctl.component.tensors import Record


def versions() -> Record:
    """What runs."""
    version: Any = importlib.import_module("torch.version")
    return {
        "python": process_facts.python_version(),
        "torch": str(torch.__version__),
        "torch_git": str(version.git_version),
        "accelerator": version.cuda or getattr(version, "xpu", None),
    }


def device_seen(name: str) -> Record:
    """The card, and how many of its kind are visible."""
    device = torch.device(name)
    facts = _accelerator(device) if device.type != "cpu" else _cpus()
    return {"device": name, **facts, "cpus": process_facts.cpus(), "threads": torch.get_num_threads()}


def _cpus() -> Record:
    name = torch.backends.cpu.get_cpu_capability()
    return {"visible": torch.cpu.device_count(), "name": f"cpu {name}", "uuid": None, "memory_bytes": None}


def _accelerator(device: torch.device) -> Record:
    vendor: Any = torch.cuda if device.type == "cuda" else torch.xpu
    properties = vendor.get_device_properties(device)
    uuid = getattr(properties, "uuid", None)
    return {
        "visible": int(vendor.device_count()),
        "name": str(properties.name),
        "uuid": None if uuid is None else str(uuid),
        "memory_bytes": int(properties.total_memory),
    }
