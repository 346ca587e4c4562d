"""What 20,000 simulated campaigns of 13 rows x 4 starts cost, from integer arrivals through every gate to the verdict.

python -m benchmarks.simulate [--campaigns N] [--json]
"""

import argparse
import json
import os
import resource
import time

from labctl.simulate.cells import Cell
from labctl.simulate.rule_sets import RuleSet
from labctl.simulate.run_cells import Size, run_cells

NULL = Cell(start_sd=0.2, row_sd=0.3)
LIMIT_S = 120


def main() -> None:
    """Run one cell under the default rules on every core, and print its times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=20_000, help="campaigns of the cell")
    parser.add_argument("--json", action="store_true", help="machine output")
    arguments = parser.parse_args()
    begin_s = time.monotonic()
    size = Size(campaigns=arguments.campaigns, compared=0, seed=1)
    ((_, (count,)),) = run_cells([NULL], (RuleSet.DEFAULT,), size)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    facts = {
        "campaigns": count.campaigns,
        "passed": count.passed,
        "wall_s": time.monotonic() - begin_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "cores": os.cpu_count() or 1,
        "limit_s": LIMIT_S,
    }
    if arguments.json:
        print(json.dumps(facts, indent=2))
        return
    for name, value in facts.items():
        print(f"{name:10} {value:.2f}")


if __name__ == "__main__":
    main()
