"""Both analyzers as processes, and their agreement; imports neither the acting side nor the judging side."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from labctl.agreement import figures_of_one, joint_verdict
from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import make_folder, make_folders, write_once
from labctl.errors import BrokenEvidence, NotFound, PreflightFailed, Problem, Refused
from labctl.packet.model import Packet, PinnedAnalyzer
from labctl.packet.own_commit import read_own_commit
from labctl.packet.tool import PACKAGE_FOLDER, STANDALONE_FILE, tool_identity
from labctl.records.run import PhaseAnswer
from labctl.records.verdict import Verdict
from labctl.rundir import RunPaths
from labctl.seal.analysis import SealedAnalysis, open_analysis, seal_analysis
from labctl.seal.verify import SealedRun, open_sealed_run

PACKET_LIMIT_BYTES = 8 << 20
ANALYZER_TIMEOUT_S = 1800
NO_BYTECODE = Path(os.devnull)
KNOWN_ANALYZERS = {"labctl": ("-m", "labctl.analyze"), "standalone": ("-S", str(STANDALONE_FILE))}


@dataclass(frozen=True, slots=True)
class Reanalysis:
    """Why a run is judged again, or by an analyzer that its packet does not pin."""

    supersedes: Path | None
    """The analysis that the new one replaces; None where there is none yet."""
    reason: str
    """One line, kept in the new analysis."""


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """What is judged, and where the analysis goes."""

    run: Path
    """A sealed run."""
    analyses: Path
    """The analyses root."""
    reanalysis: Reanalysis | None
    """None: only the analyzers that the packet pins may judge."""
    render: Callable[[Verdict], str]
    """Step 9, which writes the report that is sealed beside the verdict."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and the sealed analysis that holds it."""

    verdict: Verdict
    analysis: SealedAnalysis
    report: Path


@dataclass(frozen=True, slots=True)
class _Said:
    """What the analyzers said, as they said it and as it reads."""

    answers: dict[str, bytes]
    verdicts: list[Verdict]


def judge_run(request: JudgeRequest) -> Judgement:
    """Let every analyzer that the packet pins judge a sealed run, compare them, and seal the analysis.

    Raises:
        BrokenEvidence: the run's seal does not hold, or the first analyzer could not answer.
        Refused: an analyzer is not the pinned one and no reason was given, or an analysis exists already.
    """
    run = open_sealed_run(request.run.absolute())
    packet = Packet.from_json(run.read("packet/packet.json"), "packet/packet.json")
    earlier = find_analyses(run, request.analyses)
    _require_reason(request, earlier)
    answers, failures = _ask_every([analyzer.name for analyzer in packet.analyzers], run)
    said = _Said(answers, [Verdict.from_json(answer, f"analyzer {name}") for name, answer in answers.items()])
    for verdict in said.verdicts:
        _require_standing(verdict, request)
    return _publish(request, run, joint_verdict(said.verdicts, failures), said)


def require_analyzers(packet: Packet, bytecode: Path) -> None:
    """Start each pinned analyzer once, before anything is measured: one that cannot answer must not cost a packet.

    Args:
        packet: what pins them.
        bytecode: a fresh folder for compiled code, so that none that was there before is run; this warms it.

    Raises:
        PreflightFailed: an analyzer does not start, or is not the pinned one.
    """
    with ThreadPoolExecutor(max_workers=len(packet.analyzers)) as together:
        found = together.map(lambda pinned: _identity_problems(pinned, bytecode), packet.analyzers)
        problems = [problem for several in found for problem in several]
    if problems:
        raise PreflightFailed(problems)


def judge_phase(run: Path, bytecode: Path) -> bool:
    """Let every analyzer that the packet pins judge the closed legs of an open run, and write down what each says.

    Raises:
        BrokenEvidence: an analyzer could not answer, or answered in another form.
    """
    paths = RunPaths(run)
    packet_file = paths.packet / "packet.json"
    packet = Packet.from_json(packet_file.read_bytes(), str(packet_file))
    may_continue = True
    for analyzer in packet.analyzers:
        answer = _ask(analyzer.name, ("--phase", str(run)), bytecode)
        parsed = PhaseAnswer.from_json(answer, f"analyzer {analyzer.name}")
        write_once(paths.phase / f"{analyzer.name}.json", answer)
        may_continue = may_continue and parsed.may_continue
    return may_continue


def find_analyses(run: SealedRun, analyses: Path) -> tuple[SealedAnalysis, ...]:
    """The sealed analyses of one run, found by name and proved by the seal digest that they name."""
    found = []
    for folder in sorted(analyses.glob(f"{run.run_dir}-*")) if analyses.is_dir() else ():
        analysis = open_analysis(folder)
        if analysis.run_seal_sha256 == run.seal_sha256:
            found.append(analysis)
    return tuple(found)


def current_analysis(run: SealedRun, analyses: Path) -> SealedAnalysis:
    """The one analysis of a run that no other supersedes.

    Raises:
        NotFound: there is none, or more than one.
    """
    every = find_analyses(run, analyses)
    current = _not_superseded(every)
    if len(current) == 1:
        return current[0]
    got = ", ".join(str(analysis.root) for analysis in current) or "none"
    raise NotFound(
        Problem(
            Code.AMBIGUOUS if current else Code.NOT_FOUND,
            str(run.root),
            "one analysis that is not superseded",
            got,
            "name one with --analysis DIR" if current else f"run `labctl analyze sealed-run {run.root}`",
        )
    )


def _identity_problems(pinned: PinnedAnalyzer, bytecode: Path) -> tuple[Problem, ...]:
    try:
        found = PinnedAnalyzer.from_json(_ask(pinned.name, ("--identity",), bytecode), f"analyzer {pinned.name}")
    except BrokenEvidence as error:
        return error.problems
    if found == pinned:
        return ()
    do = "freeze again: labctl has changed since the packet was frozen"
    return (Problem(Code.FILE_DRIFT, f"analyzer {pinned.name}", pinned.sha256, found.sha256, do),)


def _ask_every(names: list[str], run: SealedRun) -> tuple[dict[str, bytes], tuple[Problem, ...]]:
    answers: dict[str, bytes] = {}
    failures: list[Problem] = []
    for name in names:
        try:
            answers[name] = _ask(name, (str(run.root),), NO_BYTECODE)
        except BrokenEvidence as error:
            failures += error.problems
    if names[0] not in answers:
        raise BrokenEvidence(failures)  # there is nothing to publish
    return answers, tuple(failures)


def _ask(name: str, arguments: tuple[str, ...], bytecode: Path) -> bytes:
    how = KNOWN_ANALYZERS.get(name)
    if how is None:
        raise BrokenEvidence(
            Problem(
                Code.ANALYZER_FAILED,
                f"analyzer {name}",
                f"one of {', '.join(KNOWN_ANALYZERS)}",
                "an unknown name",
                "use the release of labctl that froze the packet",
            )
        )
    try:
        answer = _run_analyzer((*how, *arguments), bytecode)
    except subprocess.TimeoutExpired as error:
        do = "look for a pattern or a file that is hard to judge; the run stays sealed"
        limit = f"an answer within {ANALYZER_TIMEOUT_S} s"
        raise BrokenEvidence(Problem(Code.ANALYZER_FAILED, f"analyzer {name}", limit, "none", do)) from error
    if answer.returncode != 0:
        lines = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing on its error output"]
        raise BrokenEvidence(
            Problem(
                Code.ANALYZER_FAILED, f"analyzer {name}", "an answer", line[:600], f"exit status {answer.returncode}"
            )
            for line in lines[-20:]
        )
    return answer.stdout


def _run_analyzer(arguments: tuple[str, ...], bytecode: Path) -> "subprocess.CompletedProcess[bytes]":
    """Nothing of it lies in a folder that a killed parent would leave: what it says, it says on its output."""
    return subprocess.run(
        [sys.executable, "-I", "-P", "-X", f"pycache_prefix={bytecode}", *arguments],
        capture_output=True,
        check=False,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        timeout=ANALYZER_TIMEOUT_S,
    )


def _require_reason(request: JudgeRequest, earlier: tuple[SealedAnalysis, ...]) -> None:
    """A second analysis of a run replaces one that nothing has replaced yet, by name."""
    if not earlier:
        return
    current = _not_superseded(earlier)
    supersedes = request.reanalysis.supersedes if request.reanalysis is not None else None
    if supersedes is not None and open_analysis(supersedes).seal_sha256 in {one.seal_sha256 for one in current}:
        return
    got = f"{len(earlier)} sealed analyses" if supersedes is None else f"{supersedes}, which is superseded already"
    do = f"read it with `labctl report`, or judge again with --supersedes {current[-1].root} --reason TEXT"
    raise Refused(Problem(Code.EXISTS, str(request.run), "a run that was not judged yet", got, do))


def _not_superseded(every: tuple[SealedAnalysis, ...]) -> list[SealedAnalysis]:
    superseded = {analysis.statement.predicate.facts.get("supersedes") for analysis in every}
    return [analysis for analysis in every if analysis.seal_sha256 not in superseded]


def _require_standing(verdict: Verdict, request: JudgeRequest) -> None:
    if verdict.analyzer.standing == "frozen" or request.reanalysis is not None:
        return
    raise Refused(
        Problem(
            Code.FILE_DRIFT,
            f"analyzer {verdict.analyzer.name}",
            "the code that the packet pins",
            f"code {verdict.analyzer.sha256[:12]}",
            "judge with a later analyzer by giving --reason TEXT (and --supersedes ANALYSIS where one exists)",
        )
    )


def _publish(request: JudgeRequest, run: SealedRun, verdict: Verdict, said: _Said) -> Judgement:
    make_folders(request.analyses)
    name = f"{run.run_dir}-{verdict.analyzer.sha256[:12]}-{os.urandom(4).hex()}"
    root = request.analyses / name
    report = root / "data" / "report.md"
    for folder in (root, root / "data", root / "data" / "answers"):
        make_folder(folder)
    write_once(root / "data" / "verdict.json", verdict.canonical())
    write_once(report, request.render(verdict).encode())
    for analyzer, answer in said.answers.items():
        write_once(root / "data" / "answers" / f"{analyzer}.json", answer)
    seal_analysis(root, (run.run_dir, run.seal_sha256), _predicate(request, verdict, said))
    return Judgement(verdict=verdict, analysis=open_analysis(root), report=report)


def _predicate(request: JudgeRequest, verdict: Verdict, said: _Said) -> dict[str, JsonValue]:
    again = request.reanalysis
    supersedes = (
        open_analysis(again.supersedes).seal_sha256 if again is not None and again.supersedes is not None else None
    )
    return {
        "verdict": verdict.verdict.value,
        "analyzers": {
            one.analyzer.name: {"sha256": one.analyzer.sha256, "standing": one.analyzer.standing}
            for one in said.verdicts
        },
        "answers": {name: sha256_hex(answer) for name, answer in said.answers.items()},
        "figures_of_one_analyzer": figures_of_one(said.verdicts),
        "gates": {gate.id: gate.result.value for gate in verdict.gates},
        "supersedes": supersedes,
        "reason": again.reason if again is not None else "",
        "judged_by": {
            **tool_identity().model_dump(mode="json"),
            **read_own_commit(PACKAGE_FOLDER).model_dump(mode="json"),
        },
    }
