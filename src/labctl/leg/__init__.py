"""Step 6, measure: one leg, one process, one folder."""

import sys

# httpx loads its own command line where it can, and with it two libraries that a leg has no use for: a sixth of the
# time that a leg takes to start.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None: not to be imported
