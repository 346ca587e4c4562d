"""What a leg saw mapped into its worker, as `/proc/PID/maps` lines; the worker has no part in it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

LINE = re.compile(r"([0-9a-f]{1,16})-([0-9a-f]{1,16}) [r-][w-][x-][sp-] ")


@dataclass(frozen=True, slots=True)
class AddressSpace:
    """Ranges of addresses, joined where they touch, in order."""

    spans: tuple[tuple[int, int], ...]

    def holds(self, span: tuple[int, int]) -> bool:
        """Whether a range of addresses is mapped as a whole; nothing lies at address 0."""
        start, end = span
        return start > 0 and any(low <= start and end <= high for low, high in self.spans)


def read_address_space(lines: Iterable[str]) -> AddressSpace | None:
    """The ranges that some lines tell; None where no line has one."""
    found = sorted((int(line[1], 16), int(line[2], 16)) for text in lines if (line := LINE.match(text)))
    joined: list[tuple[int, int]] = []
    for start, end in found:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return AddressSpace(tuple(joined)) if joined else None
