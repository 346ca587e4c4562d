"""`INTERPRETER -I run_probe.py ORDER RANK`: one rank process of a probe leg."""

import sys
from pathlib import Path

USAGE = 2
ARGUMENTS = 2


def main(arguments: list[str]) -> int:
    """Run one rank; 0: clean, 4: failed and recorded."""
    if len(arguments) != ARGUMENTS or not arguments[1].isdecimal():
        sys.stderr.write("usage: run_probe.py ORDER RANK\n")
        return USAGE
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    # The exported folder is on the path only now.
    from labctl.component.probe import Rank, read_probe_order, run_rank  # noqa: PLC0415 (see above)

    return run_rank(Rank(read_probe_order(Path(arguments[0])), int(arguments[1])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
