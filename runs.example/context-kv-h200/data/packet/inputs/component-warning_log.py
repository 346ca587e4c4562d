"""Every warning is shown in the log, and kept for the record."""

import sys
import warnings
from typing import TextIO


class WarningLog:
    """Takes the place of `warnings.showwarning`; filters are opened so that nothing is swallowed."""

    def __init__(self) -> None:
        self.seen: list[dict[str, str]] = []

    def install(self) -> None:
        """From now on every warning is shown and kept."""
        warnings.simplefilter("always")
        warnings.showwarning = self.show

    def show(  # noqa: PLR0913, PLR0917 (the signature of `warnings.showwarning`)
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """Show one warning on standard error, and keep it."""
        self.seen.append({"category": category.__name__, "message": str(message)})
        (file or sys.stderr).write(warnings.formatwarning(message, category, filename, lineno, line))
