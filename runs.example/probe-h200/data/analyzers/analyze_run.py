"""The second analyzer: `python3 analyze_run.py RUN` judges a sealed run, on any machine, with nothing but Python 3.11.

It shares no code with labctl: it verifies the seal itself, parses the wire bytes with its own HTTP and event-stream
parsers, and computes every exact figure again. `--phase RUN` answers the phase stop of a run that still goes on. The
answer is canonical JSON on standard output, exit 0; where there is none: a line a problem on the error output, exit 5.

The files beside this one are its parts, and its digest is over all of them: `sha256sum *.py | sha256sum`.

Left to labctl: intervals and standard deviations; the registered form of packet and vocabulary, and the suite's YAML
(their digests are verified, the prompts are those of the work orders); remarks, and what is authorized.
"""

import os
import sys
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parent
if not __package__:  # run as a file: the folder is the package, and its parts are found there and nowhere else
    __package__, __spec__ = "standalone", ModuleSpec("standalone.analyze_run", None)
    sys.modules[__package__] = ModuleType(__package__)
    sys.modules[__package__].__path__ = [str(FOLDER)]
    if sys.pycache_prefix is None:  # neither read compiled code beside the parts nor leave any in a sealed run
        sys.pycache_prefix, sys.dont_write_bytecode = os.devnull, True

from . import answer_gates, arm_gates, host_gates, log_gates, speed_gates, start_gates, statistics_gates
from .arm_differences import comparison_figures
from .card_answer import judge_card_run
from .card_reading import CardRun
from .gate_findings import Gate
from .lanes import lane_figures
from .row_figures import start_figures
from .run_conflicts import contradictions
from .run_reading import FIRST_PAIR, NAME, Run, served_version
from .sealed_files import (
    Broken,
    Doc,
    Seal,
    canonical,
    document,
    need,
    parts_sha256,
    problem,
    read_file,
    sha256,
    unequal,
)

EXACTNESS = (
    *("exact_tokens", "cross_leg_exact", "exact_within_arms", "exact_text"),
    *("long_then_next", "rollover", "moving_difference"),
)
OF_ALL_STARTS = ("drift", "consistency", "separation", "effect", "equivalence", "decision")
TIMING = ("pair", "control_near", "roofline", *OF_ALL_STARTS)
STAGES = (
    ("identity",),
    ("complete_rows", "cold", "clean_log", "treatment", "kv_capacity", "resident_memory", "steady_host", "postflight"),
    (*EXACTNESS, "degenerate_output"),
    ("accounting", "acceptance", "survival_shape"),
    TIMING,
)
LATER = (*OF_ALL_STARTS, "control_near", "moving_difference", "exact_within_arms")

# What judges each kind; it is given the gate to fill, the run, and what was registered.
KINDS: dict[str, Callable[[Gate, Run, Doc], None]] = {
    "identity": answer_gates.identity,
    "complete_rows": answer_gates.complete_rows,
    "treatment": log_gates.treatment,
    "cold": answer_gates.cold,
    "clean_log": log_gates.clean_log,
    "exact_tokens": answer_gates.exact_tokens,
    "cross_leg_exact": answer_gates.cross_leg_exact,
    "exact_within_arms": arm_gates.exact_within_arms,
    "exact_text": arm_gates.exact_text,
    "accounting": answer_gates.accounting,
    "acceptance": start_gates.acceptance,
    "survival_shape": start_gates.survival_shape,
    "kv_capacity": start_gates.kv_capacity,
    "resident_memory": start_gates.resident_memory,
    "steady_host": host_gates.steady_host,
    "postflight": start_gates.postflight,
    "degenerate_output": start_gates.degenerate_output,
    "long_then_next": start_gates.long_then_next,
    "rollover": start_gates.rollover,
    "moving_difference": start_gates.moving_difference,
    "roofline": start_gates.roofline,
    "pair": speed_gates.pair,
    "control_near": speed_gates.control_near,
    "drift": statistics_gates.drift,
    "consistency": statistics_gates.consistency,
    "separation": statistics_gates.separation,
    "effect": statistics_gates.effect,
    "equivalence": statistics_gates.equivalence,
    "decision": speed_gates.decision,
}
OWN_SHA256 = parts_sha256({path.name: path.read_bytes() for path in FOLDER.glob("[!_.]*.py")})


def judge_gates(run: Run, *, has_stopped: bool) -> list[Gate]:
    """Every gate of a run, in the order in which they are judged."""
    prereg, gates = run.prereg, list[Gate]()
    asked = [{"kind": "identity"}, {"kind": "complete_rows"}, *prereg["gates"]]
    asked[2:2] = [{"kind": "treatment", **prereg["treatment"]["proof"]}] if prereg["treatment"] else []
    asked[2:2] = [{"kind": "decision", **prereg["decision"]}] if prereg["decision"] else []
    for said in (one for stage in STAGES for one in asked if one["kind"] in stage):
        gate = Gate(said["kind"], said.get("id") or said["kind"])
        KINDS[gate.kind](gate, run, said)
        unsound = {one.kind for one in gates if one.result != "passed"}
        needed = {*EXACTNESS, "degenerate_output"}
        is_exact = speed_gates.is_exact_within_arms(run) if prereg["class"] == "comparison" else not unsound & needed
        if gate.kind in TIMING and not is_exact:
            gate.withheld = "not looked at: exactness did not pass; figures are diagnostic"
        elif gate.kind in OF_ALL_STARTS and has_stopped:
            gate.withheld = "not looked at: the run stopped after the first pair by the registered rule"
        elif gate.kind in TIMING[1:] and "complete_rows" in unsound:
            gate.withheld = "not looked at: a row does not count"
        gates.append(gate)
    return gates


def _answer_phase(run: Run, problems: Iterable[str]) -> Doc:
    """Whether the other legs may run, given the first pair alone."""
    every, run.legs = run.legs, run.legs[:FIRST_PAIR]
    gates = [gate for gate in judge_gates(run, has_stopped=True) if gate.result != "passed"]
    reasons = [*problems, *(str(gate) for gate in gates if gate.kind not in LATER)]
    answer: Doc = {"schema": "labctl/phase/1", "analyzer": NAME, "analyzer_sha256": OWN_SHA256, "reasons": reasons}
    answer["legs"] = {leg.folder: leg.manifest_sha256 for leg in run.legs if leg.manifest_sha256}
    answer["continue"], run.legs = not reasons and len(run.legs) == FIRST_PAIR, every
    return answer


def _invalid(run: Run, gates: list[Gate]) -> list[str]:
    reasons = list(run.problems)
    if run.outcome is None or run.outcome["cause"] == "evidence":
        reasons.append("no outcome is there, or evidence could not be written")
    if run.outcome is None or run.outcome["outcome"] != "aborted":
        reasons += [str(gate) for gate in gates if gate.result == "not_evaluated" and not gate.withheld]
        reasons += [str(gate) for gate in gates if gate.kind == "identity" and gate.result == "failed"]
        bad = [(leg, row) for leg in run.arm("A") for row in leg.rows if row.faults or row.doubts]
        reasons += [f"{leg.name} row {row.number} does not count: {row.faults + row.doubts}" for leg, row in bad]
    return reasons


def _decide(run: Run, gates: list[Gate]) -> tuple[str, list[str]]:
    """The first line of the table that matches, and why."""
    why, ended = {str(gate): gate.kind for gate in gates if gate.result == "failed"}, run.outcome or {}
    failed, named, how = {*why.values()}, run.prereg["class"], ended.get("outcome")
    is_compared = named == "comparison" and how == "completed" and failed <= {*EXACTNESS}
    table = (
        ("invalid", invalid := _invalid(run, gates)),
        ("infrastructure_abort_after_measurement_start", how == "aborted"),
        ("rehearsal_only", run.packet["kind"] == "rehearsal"),
        ("calibration", named == "calibration"),
        ("comparison_measured", is_compared and speed_gates.is_exact_within_arms(run)),
        ("diagnostic_measured_not_exact", failed & {*EXACTNESS}),
        ("phase1_failed_stop", how == "phase_stopped"),
        ("negative_or_inconclusive_stop", failed - {"decision"}),
        ("exact_reproducible_candidate_below_practical_floor", failed),
        ("exploratory_pass", named == "exploratory"),
        ("record_candidate", named == "record"),
    )
    kind = next(name for name, holds in table if holds)
    return kind, invalid or [*ended.get("detail", []), *why] or [f"the first line of the table that holds is {kind}"]


def judge_run(root: Path) -> Doc:
    """The verdict of a sealed run; Broken where there is nothing that could be judged."""
    seal = Seal(root.resolve())
    packet = document(need(seal.files, "packet/packet.json"), "data/packet/packet.json")
    if packet["preregistration"]["kind"] != "endpoint":
        return _card_verdict(seal)
    run = Run(seal.files, seal.statement["predicate"]["outcome"])
    run.problems += list(contradictions(run))
    folders = (f"data/legs/{leg.folder}" for leg in run.legs[FIRST_PAIR:])
    later = ("data/outcome.json", "data/journal.jsonl", "data/phase1", *folders)
    for answer in run.answers:
        again = _answer_phase(run, [one for one in run.problems if not one.startswith(later)])
        said = [(one["continue"], one["legs"]) for one in (again, answer)]
        run.problems += unequal(f"data/phase1/{answer['analyzer']}.json", ("the phase, judged again", said[0], said[1]))
    gates = judge_gates(run, has_stopped=(run.outcome or {}).get("outcome") == "phase_stopped")
    kind, because = _decide(run, gates)
    decisions = [gate for gate in gates if gate.kind == "decision" and gate.result != "not_evaluated"]
    reported = [one for gate in decisions for one in gate.figures if one["name"] == "reported_value"]
    reported = [] if kind in ("invalid", "infrastructure_abort_after_measurement_start") else reported
    versions = {served_version(leg.process) or "unknown" for leg in run.legs if leg.process}
    standing = "frozen" if {"name": NAME, "sha256": OWN_SHA256} in run.packet["analyzers"] else "later"
    digests = {"seal_sha256": sha256(seal.tags["seal.json"]), "root_sha256": sha256(seal.tags["manifest-sha256.txt"])}
    digests |= {"packet_sha256": run.digests["packet.json"], "marker_sha256": run.digests["marker.copy.json"]}
    told: Doc = {"schema": "labctl/verdict/1", "verdict": kind, "because": because, "run_dir": run.marker["run_dir"]}
    told |= {"campaign": run.prereg["id"], "class": run.prereg["class"], "kind": run.packet["kind"], **digests}
    told |= {"attempt": run.packet["attempt"], "is_stand_in": run.engine.get("is_stand_in", False)}
    told["engine"] = f"{run.engine['engine']} {', '.join(sorted(versions)) or 'not served'}"
    told["analyzer"] = {"name": NAME, "sha256": OWN_SHA256, "standing": standing}
    told |= {
        "gates": [gate.answer() for gate in gates],
        "effect": [
            *speed_gates.effect(run),
            *statistics_gates.conclusions(run),
            *lane_figures(run),
            *comparison_figures(run),
        ],
    }
    told["starts"] = [start_figures(leg.name, leg.rows, run.metric) for leg in run.legs if leg.rows]
    told["rows"] = [row.figures(leg.name) for leg in run.legs for row in leg.rows]
    told |= {"reported_value": reported[0] if reported else None, "expectation": "", "authorizes": []}
    told["warnings"] = ["the suite's YAML was not parsed: the prompts are those of the work orders, all equal"]
    return told | {"does_not_authorize": ["anything: what a verdict authorizes is left to labctl"]}


def _card_verdict(seal: Seal) -> Doc:
    """The verdict of a run that starts no server."""
    run = CardRun(seal.files, seal.statement["predicate"]["outcome"])
    standing = "frozen" if {"name": NAME, "sha256": OWN_SHA256} in run.packet["analyzers"] else "later"
    told: Doc = {"schema": "labctl/verdict/1", "run_dir": run.marker["run_dir"], "campaign": run.prereg["id"]}
    told |= {"class": run.prereg["class"], "kind": run.packet["kind"], "attempt": run.packet["attempt"]}
    told |= {"seal_sha256": sha256(seal.tags["seal.json"]), "root_sha256": sha256(seal.tags["manifest-sha256.txt"])}
    told |= {"packet_sha256": run.digests["packet.json"], "marker_sha256": run.digests["marker.copy.json"]}
    told["analyzer"] = {"name": NAME, "sha256": OWN_SHA256, "standing": standing}
    told |= {"is_stand_in": False, "effect": [], "starts": [], "rows": [], "reported_value": None, "expectation": ""}
    told |= {"warnings": [], "authorizes": [], **judge_card_run(run)}
    return told | {"does_not_authorize": ["anything: what a verdict authorizes is left to labctl"]}


def judge_phase(root: Path) -> Doc:
    """The answer to the phase stop of a run that still goes on; Broken where nothing could be judged."""
    data, manifests = root / "data", root.glob("data/legs/*/leg-manifest-sha256.txt")
    closed = tuple(f"legs/{path.parent.name}/" for path in manifests)
    names = (path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file())
    kept = (name for name in names if name.startswith(("packet/", "host/", "analyzers/", "journal.jsonl", *closed)))
    run = Run({name: read_file(data, name) for name in kept}, None)
    return _answer_phase(run, [*run.problems, *contradictions(run)])


def main(arguments: list[str]) -> int:
    """Answer on standard output; where that cannot be done, one line a problem on the error output."""
    judge, paths = (judge_phase, arguments[1:]) if arguments[:1] == ["--phase"] else (judge_run, arguments)
    if arguments == ["--identity"]:
        sys.stdout.buffer.write(canonical({"name": NAME, "sha256": OWN_SHA256}))
        return 0
    if len(paths) != 1 or paths[0].startswith("-"):
        sys.stderr.write("usage: python3 analyze_run.py [--phase] RUN\n")
        return 2
    try:
        answer = canonical(judge(Path(paths[0])))
    except Broken as error:
        sys.stderr.write("".join(f"{problem}\n" for problem in error.args))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        got = f"{type(error).__name__}: {error}"[:160]
        sys.stderr.write(problem("RECORD_FORM", "a record", "its registered form", got) + "\n")
    else:
        sys.stdout.buffer.write(answer)
        return 0
    return 5


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
