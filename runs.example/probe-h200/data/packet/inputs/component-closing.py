"""`component.json`: written however the worker ends, as long as the process lives."""

import hashlib
import os
import sys
import time
import traceback
from types import TracebackType
from typing import Any

from labctl.component import process_facts
from labctl.component.order import Order
from labctl.component.stopwatch import Stopwatch
from labctl.component.warning_log import WarningLog
from labctl.component.writing import Lines, canonical, write_once

COMPLETED = 0
FAILED = 4
MESSAGE_LIMIT = 2000


class Closing:
    """A context: what is known at its end goes into the record, and an exception ends here as a failure."""

    def __init__(self, order: Order, seal_sha256: str) -> None:
        self.order = order
        self.watch = Stopwatch()
        self.warnings = WarningLog()
        self.stage = "import"
        self.rows = 0
        self.exit_status = FAILED
        self._lines = Lines(order.leg_folder / "rows.jsonl")
        self._rows_digest = hashlib.sha256()
        self._record: dict[str, Any] = {
            "schema": "labctl/component/1",
            "leg": order.leg,
            "order_sha256": order.sha256,
            "pre_import_sha256": seal_sha256,
            "pid": os.getpid(),
            "versions": None,
            "device": None,
            "weights_before": [],
            "weights_after": [],
            "caches": [],
            "cache_layout": None,
            "owned": [],
            "microcases": [],
            "channels_before": None,
            "channels_after": None,
            "timing": {"import_ns": 0},
            "started_mono_ns": time.monotonic_ns(),
        }

    def __enter__(self) -> "Closing":
        self.warnings.install()
        return self

    def imported(self) -> None:
        """Torch is imported, and the worker file is about to run."""
        self._record["channels_before"] = process_facts.channels()

    def loaded(self) -> None:
        """The worker file is loaded; what follows is its work."""
        self._record["timing"]["import_ns"] = self.watch.compute_ns
        self.watch = Stopwatch()

    def tell(self, **facts: object) -> None:
        """Facts for the record."""
        self._record.update(facts)

    def append_row(self, row: dict[str, Any]) -> None:
        """One row is over; its line is with the system, and the disk follows."""
        self._rows_digest.update(self._lines.append(row))
        self.rows += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        unsettled = self._unsettled()
        error = error or unsettled
        if error is None:
            self.exit_status = COMPLETED
        else:
            traceback.print_exception(error, file=sys.stderr)
        ending: dict[str, Any] = {"kind": "completed"} if error is None else self._failure(error)
        write_once(self.order.leg_folder / "component.json", canonical(self._whole(ending)))
        return True

    def _unsettled(self) -> OSError | None:
        try:
            self._lines.settle()
        except OSError as error:
            return error
        return None

    def _whole(self, ending: dict[str, Any]) -> dict[str, Any]:
        timing = {"compute_ns": self.watch.compute_ns, "recording_ns": self.watch.recording_ns}
        return {
            **self._record,
            "rows": self.rows,
            "rows_sha256": self._rows_digest.hexdigest(),
            "warnings": self.warnings.seen,
            "channels_after": process_facts.channels(),
            "timing": {**self._record["timing"], **timing},
            "ended_mono_ns": time.monotonic_ns(),
            "ending": ending,
        }

    def _failure(self, error: BaseException) -> dict[str, Any]:
        return {
            "kind": "failed",
            "stage": self.stage,
            "row": self.rows,
            "exception": type(error).__qualname__,
            "message": str(error)[:MESSAGE_LIMIT],
            "traceback": [line.rstrip("\n") for line in traceback.format_tb(error.__traceback__)],
        }
