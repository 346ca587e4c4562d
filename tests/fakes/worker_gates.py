"""The gates over one worker's records, run on what a real worker process left."""

from collections.abc import Callable
from functools import partial

from labctl.analyze.component.address_space import read_address_space
from labctl.analyze.component.complete_rows import judge_complete_rows, judge_fresh
from labctl.analyze.component.evidence import Worked
from labctl.analyze.component.layouts import judge_layouts
from labctl.analyze.component.microcases import judge_microcases
from labctl.analyze.component.pointers import judge_pointers
from labctl.analyze.component.rows_exact import judge_rows_exact
from labctl.analyze.component.weights import judge_first_caches, judge_weights
from labctl.analyze.gates.findings import Findings
from labctl.prereg.component_model import ComponentPreregistration
from labctl.records.verdict import GateResult
from tests.fakes.component_worker import WorkerRun


def failed_gates(said: ComponentPreregistration, run: WorkerRun) -> dict[str, str]:
    """Every gate that does not pass, with its first miss."""
    worked = Worked("card0", said, run.pre_import, run.rows, run.component)
    assert said.checkpoint is not None
    judges: dict[str, Callable[[Findings], object]] = {
        "complete_rows": partial(judge_complete_rows, worked=worked),
        "fresh": partial(judge_fresh, every=[worked]),
        "layouts": partial(judge_layouts, worked=worked),
        "pointers": partial(judge_pointers, worked=worked, space=read_address_space(run.maps.splitlines())),
        "microcases": partial(judge_microcases, worked=worked),
        "rows_exact": partial(judge_rows_exact, worked=worked),
        "weights_unchanged": partial(judge_weights, worked=worked, checkpoint=said.checkpoint),
        "first_caches": partial(judge_first_caches, worked=worked),
    }
    failed = {}
    for name, judge in judges.items():
        findings = Findings(name, name)
        judge(findings)
        outcome = findings.outcome()
        if outcome.result is not GateResult.PASSED:
            failed[name] = outcome.reason
    return failed
