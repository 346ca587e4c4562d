"""What each analyzer says of one sealed run: `both(builder, tmp_path)` seals it, and judges it twice."""

from pathlib import Path
from typing import Protocol

from labctl.analyze.sealed_run import analyze_run
from labctl.frozen import canonical_json
from labctl.packet.tool import analyzer_identity
from labctl.records.verdict import GateResult, Verdict
from labctl.seal.verify import SealedRun
from labctl.standalone import analyze_run as standalone


class Sealable(Protocol):
    """A synthetic run of any kind."""

    root: Path

    def seal(self, folder: Path) -> SealedRun:
        """Write and seal the run below a folder; `root` is then where it lies."""


def both(run: Sealable, folder: Path) -> tuple[Verdict, Verdict]:
    """Seal a run below a folder, and judge it by labctl's analyzer and by the standalone one."""
    sealed = run.seal(folder)
    told = canonical_json(standalone.judge_run(run.root))
    return analyze_run(sealed, analyzer_identity()), Verdict.from_json(told, "standalone")


def failed(verdict: Verdict) -> list[str]:
    """The kinds of the gates that failed, in the verdict's order."""
    return [gate.kind for gate in verdict.gates if gate.result is GateResult.FAILED]
