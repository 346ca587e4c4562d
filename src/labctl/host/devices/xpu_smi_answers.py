"""The JSON of `xpu-smi`, of version 1 and version 2, read without trust."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from labctl.codes import Code
from labctl.errors import PreflightFailed, Problem

KILO = 1000  # `ps` gives sizes in units of 1,000 bytes


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of `device_list`."""

    index: int
    uuid: str
    bus_id: str
    drm_node: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Detail:
    """The answer about one card."""

    driver: str
    memory_bytes: int
    free_bytes: int | None


@dataclass(frozen=True, slots=True)
class Client:
    """One entry of `device_util_by_proc_list`."""

    index: int
    pid: int
    name: str
    memory_bytes: int


def read_list(answer: object, where: str) -> tuple[Listed, ...]:
    """The cards that a machine, or what is left of it under affinity, has; by PCI address.

    Raises:
        PreflightFailed: the answer has another form.
    """
    cards = [
        Listed(
            index=_number(entry, where, "device_id"),
            uuid=_text(entry, where, "uuid", "soc_uuid").lower(),
            bus_id=_text(entry, where, "pci_bdf_address").lower(),
            drm_node=_optional_text(entry, "drm_device", "drm_device_path"),
            name=_text(entry, where, "device_name"),
        )
        for entry in _entries(answer, "device_list", where)
    ]
    return tuple(sorted(cards, key=lambda card: card.bus_id))


def read_detail(answer: object, where: str) -> Detail:
    """What is told about one card; numbers come as numbers or as text, and what is not known as `N/A` or not at all.

    Raises:
        PreflightFailed: the answer has another form.
    """
    entry = _mapping(answer, where)
    return Detail(
        driver=_text(entry, where, "driver_version"),
        memory_bytes=_number(entry, where, "memory_physical_size_byte"),
        free_bytes=_optional_number(entry, "memory_free_size_byte"),
    )


def read_clients(answer: object, where: str) -> tuple[Client, ...]:
    """Every pair of a process and a card that it uses.

    Raises:
        PreflightFailed: the answer has another form.
    """
    return tuple(
        Client(
            index=_number(entry, where, "device_id"),
            pid=_number(entry, where, "process_id"),
            name=_text(entry, where, "process_name"),
            memory_bytes=_number(entry, where, "mem_size") * KILO,
        )
        for entry in _entries(answer, "device_util_by_proc_list", where)
    )


def _entries(answer: object, key: str, where: str) -> Iterator[Mapping[str, object]]:
    entries = _mapping(answer, where).get(key)
    if not isinstance(entries, list):
        raise _refusal(f"{where}: {key}", "a list", entries)
    for entry in entries:
        yield _mapping(entry, f"{where}: {key}")


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _refusal(where, "a mapping", value)
    return value


def _text(entry: Mapping[str, object], where: str, *keys: str) -> str:
    found = _optional_text(entry, *keys)
    if found is None:
        raise _refusal(f"{where}: {keys[0]}", "text", _first(entry, keys))
    return found


def _optional_text(entry: Mapping[str, object], *keys: str) -> str | None:
    found = _first(entry, keys)
    return found if isinstance(found, str) and found not in {"", "N/A"} else None


def _number(entry: Mapping[str, object], where: str, key: str) -> int:
    found = _optional_number(entry, key)
    if found is None:
        raise _refusal(f"{where}: {key}", "a number that is not negative", entry.get(key))
    return found


def _optional_number(entry: Mapping[str, object], key: str) -> int | None:
    found = entry.get(key)
    if isinstance(found, str) and found.isdecimal() and found.isascii():
        return int(found)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def _first(entry: Mapping[str, object], keys: Iterable[str]) -> object:
    return next((entry[key] for key in keys if key in entry), None)


def _refusal(where: str, expected: str, got: object) -> PreflightFailed:
    do = "see docs/devices.md for the versions that are known to work"
    return PreflightFailed(Problem(Code.PREFLIGHT, where, expected, repr(got)[:80], do))
