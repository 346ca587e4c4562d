"""Pool sealed calibration runs into the noise record of their host."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from labctl.analyze.evidence import RunEvidence
from labctl.analyze.gates.judge import headline_metric
from labctl.analyze.load import load_evidence
from labctl.analyze.noise import Noise, noise_of
from labctl.analyze.sealed_run import analyze_run
from labctl.analyze.served import engine_served
from labctl.codes import Code
from labctl.errors import Problem, Refused
from labctl.packet.lane import lane_target
from labctl.packet.model import PinnedAnalyzer
from labctl.packet.noise_host import noise_host
from labctl.power import sd_limits
from labctl.prereg.noise import NoiseRecord, NoiseRun, percent_of_log, pooled_log_row_sd, pooled_log_sd
from labctl.records.verdict import GateResult, Verdict, VerdictKind
from labctl.seal.verify import SealedRun

LABEL_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Calibration:
    """One calibration run whose every gate passed, and its noise."""

    run: SealedRun
    evidence: RunEvidence
    noise: Noise

    def subject(self) -> dict[str, object]:
        """What must be the same in all runs that are pooled, by name."""
        identity = self.evidence.host
        host = {} if identity is None else noise_host(identity).model_dump()
        said = self.evidence.packet.preregistration
        return {
            **host,
            "engine": engine_served(self.evidence),
            "target": lane_target(self.evidence.packet),
            "metric": headline_metric(said).value,
        }


def pool_noise(runs: Sequence[SealedRun], name: str, analyzer: PinnedAnalyzer) -> NoiseRecord:
    """The noise record of sealed calibration runs of one host and service.

    Args:
        runs: sealed runs, verified against their seals.
        name: the record's name for people.
        analyzer: the identity of this analyzer.

    Raises:
        Refused: a run is no calibration that passed, is there twice, or is of another host or service (RULE).
    """
    problems: list[Problem] = []
    found = [one for run in runs if (one := _calibration(run, analyzer, problems)) is not None]
    problems += _strangers(found)
    problems += _doubles(runs) or _copies(found)
    if problems or not found:
        raise Refused(problems or [_refused("runs", "at least one run", "none", "name a sealed calibration run")])
    return _record(found, name)


def _calibration(run: SealedRun, analyzer: PinnedAnalyzer, problems: list[Problem]) -> Calibration | None:
    verdict = analyze_run(run, analyzer)
    faults = _faults(verdict)
    evidence = load_evidence(run, run.outcome)
    noise = noise_of(evidence.legs, headline_metric(evidence.packet.preregistration))
    if not faults and (noise is None or noise.limits is None):
        faults = "starts or rows that show no spread"
    if faults or noise is None:
        problems.append(_refused(run.run_dir, "a calibration whose every gate passed", faults, "leave it out"))
        return None
    return Calibration(run, evidence, noise)


def _faults(verdict: Verdict) -> str:
    bad = [gate.id for gate in verdict.gates if gate.result is not GateResult.PASSED]
    if verdict.verdict is not VerdictKind.CALIBRATION:
        return f"verdict {verdict.verdict}: {verdict.because[0]}"
    return f"gates {', '.join(bad)}, which did not pass" if bad else ""


def _strangers(found: Sequence[Calibration]) -> Iterator[Problem]:
    """Runs of another host, service or metric than the first."""
    first = found[0].subject() if found else {}
    for one in found[1:]:
        own = one.subject()
        if differing := [name for name, value in first.items() if own.get(name) != value]:
            expected = f"the host and service of {found[0].run.run_dir}"
            do = "pool it on its own: noise does not carry over"
            yield _refused(one.run.run_dir, expected, f"another {', '.join(differing)}", do)


def _doubles(runs: Sequence[SealedRun]) -> list[Problem]:
    seals = [run.seal_sha256 for run in runs]
    again = [run for place, run in enumerate(runs) if run.seal_sha256 in seals[:place]]
    return [_refused(run.run_dir, "each run once", "it again", "name it once") for run in again]


def _copies(found: Sequence[Calibration]) -> list[Problem]:
    """A packet runs once, so a second seal over it is that of a copy."""
    packets = [one.evidence.packet_id for one in found]
    again = [one for place, one in enumerate(found) if packets[place] in packets[:place]]
    return [_refused(one.run.run_dir, "each packet once", "its packet again", "leave the copy out") for one in again]


def _record(found: Sequence[Calibration], name: str) -> NoiseRecord:
    runs = tuple(_run(one) for one in found)
    sd, df = pooled_log_sd(runs)
    limits = sd_limits(sd, df)
    subject = found[0].subject()
    drifts = [one.noise.drift_per_start for one in found]
    return NoiseRecord.model_validate(
        {
            "labctl": 1,
            "kind": "noise",
            "id": name,
            "host": {key: subject.pop(key) for key in list(subject) if key not in ("engine", "target", "metric")},
            "engine": subject["engine"],
            "target": subject["target"],
            "metric": headline_metric(found[0].evidence.packet.preregistration),
            "runs": runs,
            "df": df,
            "start_sd_percent": percent_of_log(sd),
            "start_sd_lower_percent": percent_of_log(limits.lower),
            "start_sd_upper_percent": percent_of_log(limits.upper),
            "start_sd_planning_percent": percent_of_log(limits.planning),
            "row_sd_percent": percent_of_log(pooled_log_row_sd(runs)),
            "drift_percent_per_start": percent_of_log(math.fsum(drifts) / len(drifts)),
        }
    )


def _run(one: Calibration) -> NoiseRun:
    return NoiseRun(
        run=one.run.run_dir,
        seal_sha256=one.run.seal_sha256,
        packet_sha256=one.evidence.packet_id,
        starts=one.noise.starts,
        start_sd_percent=percent_of_log(one.noise.start_sd),
        drift_percent_per_start=percent_of_log(one.noise.drift_per_start),
        row_sd_percent=percent_of_log(one.noise.row_sd),
        row_df=one.noise.row_df,
    )


def _refused(where: str, expected: str, got: str, do: str) -> Problem:
    return Problem(Code.RULE, where, expected, got, do)
