"""`INTERPRETER -I run_worker.py ORDER`: the worker process of a component leg.

Nothing but the standard library is imported before the pre-import seal is on disk.
"""

import sys
from pathlib import Path

USAGE = 2


def main(arguments: list[str]) -> int:
    """Seal, run, record; 0: completed, 4: failed and recorded."""
    if len(arguments) != 1:
        sys.stderr.write("usage: run_worker.py ORDER\n")
        return USAGE
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    # The exported folder is on the path only now, and torch must not be imported before the seal.
    from labctl.component.closing import Closing  # noqa: PLC0415 (see above)
    from labctl.component.order import read_order  # noqa: PLC0415 (see above)
    from labctl.component.seal import write_seal  # noqa: PLC0415 (see above)

    order = read_order(Path(arguments[0]))
    with Closing(order, write_seal(order)) as closing:
        from labctl.component.conduct import conduct  # noqa: PLC0415 (see above)

        conduct(order, closing)
    return closing.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
