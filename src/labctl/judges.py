"""Both analyzers as processes, and their agreement; imports neither the acting side nor the judging side."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from labctl.agreement import figures_of_one, joint_verdict
from labctl.analyzers import NO_BYTECODE, ask_analyzer, identity_problems
from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import make_folder, make_folders, write_once
from labctl.errors import BrokenEvidence, PreflightFailed, Problem, Refused
from labctl.packet.model import Packet
from labctl.packet.own_commit import read_own_commit
from labctl.packet.tool import PACKAGE_FOLDER, tool_identity
from labctl.records.run import PhaseAnswer
from labctl.records.verdict import Verdict
from labctl.rundir import RunPaths
from labctl.seal.analyses import find_analyses, not_superseded
from labctl.seal.analysis import SealedAnalysis, open_analysis, seal_analysis
from labctl.seal.verify import SealedRun, open_sealed_run


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
        found = together.map(lambda pinned: identity_problems(pinned, bytecode), packet.analyzers)
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
        answer = ask_analyzer(analyzer.name, ("--phase", str(run)), bytecode)
        parsed = PhaseAnswer.from_json(answer, f"analyzer {analyzer.name}")
        write_once(paths.phase / f"{analyzer.name}.json", answer)
        may_continue = may_continue and parsed.may_continue
    return may_continue


def _ask_every(names: list[str], run: SealedRun) -> tuple[dict[str, bytes], tuple[Problem, ...]]:
    answers: dict[str, bytes] = {}
    failures: list[Problem] = []
    for name in names:
        try:
            answers[name] = ask_analyzer(name, (str(run.root),), NO_BYTECODE)
        except BrokenEvidence as error:
            failures += error.problems
    if names[0] not in answers:
        raise BrokenEvidence(failures)  # there is nothing to publish
    return answers, tuple(failures)


def _require_reason(request: JudgeRequest, earlier: tuple[SealedAnalysis, ...]) -> None:
    """A second analysis of a run replaces one that nothing has replaced yet, by name."""
    if not earlier:
        return
    current = not_superseded(earlier)
    supersedes = request.reanalysis.supersedes if request.reanalysis is not None else None
    if supersedes is not None and open_analysis(supersedes).seal_sha256 in {one.seal_sha256 for one in current}:
        return
    got = f"{len(earlier)} sealed analyses" if supersedes is None else f"{supersedes}, which is superseded already"
    do = f"read it with `labctl report`, or judge again with --supersedes {current[-1].root} --reason TEXT"
    raise Refused(Problem(Code.EXISTS, str(request.run), "a run that was not judged yet", got, do))


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
