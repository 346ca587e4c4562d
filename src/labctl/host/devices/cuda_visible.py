"""Asks the CUDA driver which cards this process sees, and prints JSON; run alone, with the standard library only.

NVML does not honour `CUDA_VISIBLE_DEVICES`, so what a worker will see can be learnt from the driver alone. No context
is made and no memory is taken on any card.
"""

import ctypes
import json
import sys
import uuid

BUS_ID_BYTES = 16
NAME_BYTES = 256


def main() -> int:
    """Print `{"cards": […]}`, or `{"error": …}` with exit status 1."""
    try:
        cards = visible_cards(ctypes.CDLL("libcuda.so.1"))
    except (OSError, AttributeError, RuntimeError) as error:
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        return 1
    sys.stdout.write(json.dumps({"cards": cards}, sort_keys=True) + "\n")
    return 0


def visible_cards(driver: ctypes.CDLL) -> list[dict[str, object]]:
    """Index, UUID, PCI address, name and memory of each card, in the driver's order."""
    call(driver, "cuInit", 0)
    count = ctypes.c_int()
    call(driver, "cuDeviceGetCount", ctypes.byref(count))
    return [card(driver, index) for index in range(count.value)]


def card(driver: ctypes.CDLL, index: int) -> dict[str, object]:
    """One card."""
    device, raw, memory = ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.c_size_t()
    bus_id, name = ctypes.create_string_buffer(BUS_ID_BYTES), ctypes.create_string_buffer(NAME_BYTES)
    call(driver, "cuDeviceGet", ctypes.byref(device), index)
    call(driver, "cuDeviceGetUuid", ctypes.byref(raw), device)
    call(driver, "cuDeviceGetPCIBusId", bus_id, BUS_ID_BYTES, device)
    call(driver, "cuDeviceGetName", name, NAME_BYTES, device)
    call(driver, "cuDeviceTotalMem_v2", ctypes.byref(memory), device)
    return {
        "index": index,
        "uuid": f"GPU-{uuid.UUID(bytes=bytes(raw))}",
        "bus_id": bus_id.value.decode("ascii").lower(),
        "name": name.value.decode("utf-8", "replace"),
        "memory_bytes": memory.value,
    }


def call(driver: ctypes.CDLL, name: str, *arguments: object) -> None:
    """Call a function of the driver."""
    status = getattr(driver, name)(*arguments)
    if status != 0:
        message = f"{name} gave CUDA error {status}"
        raise RuntimeError(message)


if __name__ == "__main__":
    sys.exit(main())
