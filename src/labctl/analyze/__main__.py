"""`python -m labctl.analyze RUN` prints the verdict of a sealed run; `--phase RUN_DIR` answers the phase stop.

`--identity` says which code this is, so that it is known to start before anything is measured.
"""

import sys
from pathlib import Path

from labctl.analyze.files import OpenRunFiles
from labctl.analyze.load import load_evidence
from labctl.analyze.phase import answer_phase
from labctl.analyze.sealed_run import analyze_run
from labctl.errors import LabctlError
from labctl.packet.tool import analyzer_identity
from labctl.seal.verify import open_sealed_run

USAGE = "usage: python -m labctl.analyze [--phase] RUN\n"
EXIT_USAGE = 2
EXIT_BROKEN = 5


def main(arguments: list[str]) -> int:
    """Answer on standard output; where that cannot be done, one line a problem on the error output."""
    match arguments:
        case ["--identity"]:
            sys.stdout.buffer.write(analyzer_identity().canonical())
            return 0
        case ["--phase", run]:
            answer = _phase
        case [run] if not run.startswith("-"):
            answer = _verdict
        case _:
            sys.stderr.write(USAGE)
            return EXIT_USAGE
    try:
        sys.stdout.buffer.write(answer(Path(run)))
    except LabctlError as error:
        sys.stderr.write("".join(f"{problem}\n" for problem in error.problems))
        return EXIT_BROKEN
    return 0


def _phase(run: Path) -> bytes:
    evidence = load_evidence(OpenRunFiles(run))
    return answer_phase(evidence, analyzer_identity().sha256, evidence.conflicts).canonical()


def _verdict(run: Path) -> bytes:
    return analyze_run(open_sealed_run(run), analyzer_identity()).canonical()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
