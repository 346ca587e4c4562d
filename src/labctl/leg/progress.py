"""Running a leg: lines for whoever waits; progress only, never a record."""

import contextlib
import os
import select

from labctl.frozen import canonical_json

STANDARD_OUTPUT = 1


class Progress:
    """Writes one short JSON line an event, and goes on without it when nobody reads."""

    def __init__(self, descriptor: int = STANDARD_OUTPUT) -> None:
        self._descriptor = descriptor
        self._room = select.poll()
        self._room.register(descriptor, select.POLLOUT)

    def tell(self, event: str, **facts: int | str) -> None:
        """Say what has just happened."""
        line = canonical_json({"event": event, **facts})
        # A pipe that is ready takes this much whole, so a reader that has stopped reading cannot stop the leg.
        if len(line) <= select.PIPE_BUF and self._room.poll(0):
            with contextlib.suppress(OSError):
                os.write(self._descriptor, line)
