"""Noise records: how far equal starts of one host lie apart, pooled from sealed calibration runs."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from labctl.codes import Code
from labctl.frozen import DecimalText, FrozenModel, SafeName, Sha256
from labctl.prereg.field_types import CampaignId, LegName, Line, MetricId
from labctl.prereg.finding import Finding

HUNDRED = 100
SAME_WITHIN = 1e-6
MOST_ROW_DF = 10**9
SPREADS_OF_A_RUN = ("start_sd_percent", "row_sd_percent")
SPREADS = (*SPREADS_OF_A_RUN, "start_sd_lower_percent", "start_sd_upper_percent", "start_sd_planning_percent")
Positive = Annotated[int, Field(ge=1)]
RationalText = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*(/[1-9][0-9]*)?$", max_length=200)]


class NoiseHost(FrozenModel):
    """The host that the noise is of; a change of any of these makes the record one of another host."""

    machine_id_sha256: Sha256
    """Digest of the machine id."""
    cpu_model: Line
    """As /proc/cpuinfo says."""
    cpu_count: Positive
    """CPUs online."""
    cpuinfo_sha256: Sha256
    """Digest of the lines of /proc/cpuinfo that do not change while running."""
    memory_bytes: Positive
    """MemTotal."""
    kernel: Line
    """Kernel release and version."""
    clocksource: str
    """The kernel's clock source."""
    governors: tuple[str, ...]
    """Distinct CPU frequency governors."""


class NoiseStart(FrozenModel):
    """One start and its headline."""

    leg: LegName
    """The leg."""
    headline: RationalText
    """Tokens per second, exactly."""


class NoiseRun(FrozenModel):
    """One sealed calibration run."""

    run: SafeName
    """The run."""
    seal_sha256: Sha256
    """SHA-256 of its seal statement."""
    packet_sha256: Sha256
    """Its packet."""
    starts: Annotated[tuple[NoiseStart, ...], Field(min_length=2)]
    """Every start, in the order in which they ran."""
    start_sd_percent: DecimalText
    """Sample SD of the starts' headlines in logs, in percent."""
    drift_percent_per_start: DecimalText
    """Slope of the headlines over the order, in percent a start."""
    row_sd_percent: DecimalText
    """SD of single rows around their start and their prompt, in percent."""
    row_df: Positive
    """Degrees of freedom of that."""


class NoiseRecord(FrozenModel):
    """What is known of the noise of one host, service and metric."""

    labctl: Literal[1]
    """The version of this format."""
    kind: Literal["noise"]
    """The file's kind."""
    id: CampaignId
    """A name for people."""
    host: NoiseHost
    """Whose noise it is."""
    engine: Line
    """Engine and version that the runs served."""
    target: Line
    """What was served: `model:` and the digest of its manifest, or the stand-in."""
    metric: MetricId
    """The rate whose headlines were taken."""
    runs: Annotated[tuple[NoiseRun, ...], Field(min_length=1)]
    """The runs that were pooled, each once."""
    df: Positive
    """Degrees of freedom of the pooled SD: starts less runs."""
    start_sd_percent: DecimalText
    """Pooled SD between equal starts, in percent."""
    start_sd_lower_percent: DecimalText
    """Lower 95 % confidence limit of it."""
    start_sd_upper_percent: DecimalText
    """Upper 95 % confidence limit of it."""
    start_sd_planning_percent: DecimalText
    """Upper one-sided 80 % confidence limit: what power is planned with."""
    row_sd_percent: DecimalText
    """Pooled SD of single rows, in percent."""
    drift_percent_per_start: DecimalText
    """Mean slope over the runs, in percent a start."""


def log_of_percent(percent: str) -> float:
    """A share in percent, as a difference of logarithms."""
    return math.log1p(float(percent) / HUNDRED)


def percent_of_log(difference: float) -> str:
    """A difference of logarithms in percent, as decimal text to 9 places."""
    return f"{HUNDRED * math.expm1(difference):.9f}"


def pooled_log_sd(runs: tuple[NoiseRun, ...]) -> tuple[float, int]:
    """The pooled SD between starts in logs, and its degrees of freedom."""
    df = sum(len(run.starts) - 1 for run in runs)
    squares = sum((len(run.starts) - 1) * log_of_percent(run.start_sd_percent) ** 2 for run in runs)
    return math.sqrt(squares / df), df


def pooled_log_row_sd(runs: tuple[NoiseRun, ...]) -> float:
    """The pooled SD of single rows in logs."""
    df = sum(run.row_df for run in runs)
    return math.sqrt(sum(run.row_df * log_of_percent(run.row_sd_percent) ** 2 for run in runs) / df)


def log_sd_of_starts(starts: tuple[NoiseStart, ...]) -> float:
    """The sample SD of the headlines in logs."""
    logs = [math.log(Fraction(start.headline)) for start in starts]
    centre = math.fsum(logs) / len(logs)
    return math.sqrt(math.fsum((one - centre) ** 2 for one in logs) / (len(logs) - 1))


def noise_findings(record: NoiseRecord) -> Iterator[Finding]:
    """Everything that contradicts itself within a noise record."""
    impossible = list(_impossible(record))
    if impossible:
        yield from impossible  # no logarithm of these can be taken
        return
    yield from _run_findings(record.runs)
    pooled, df = pooled_log_sd(record.runs)
    if record.df != df:
        yield _finding(("df",), f"{df}, starts less runs", str(record.df))
    yield from _differs(("start_sd_percent",), pooled, record.start_sd_percent)
    yield from _differs(("row_sd_percent",), pooled_log_row_sd(record.runs), record.row_sd_percent)
    if pooled == 0:
        yield _finding(("start_sd_percent",), "a spread above 0, which any clock shows", record.start_sd_percent)
    limits = [record.start_sd_lower_percent, record.start_sd_percent, record.start_sd_planning_percent]
    limits.append(record.start_sd_upper_percent)
    if sorted(limits, key=float) != limits:
        yield _finding(("start_sd_lower_percent",), "limits around the SD", ", ".join(limits))


def _impossible(record: NoiseRecord) -> Iterator[Finding]:
    """Spreads below 0, and counts of rows that no run of so many starts has."""
    for name in SPREADS:
        if (value := getattr(record, name)).startswith("-"):
            yield _finding((name,), "0 or more", value)
    for index, run in enumerate(record.runs):
        for name in SPREADS_OF_A_RUN:
            if (value := getattr(run, name)).startswith("-"):
                yield _finding(("runs", index, name), "0 or more", value)
        if run.row_df % (len(run.starts) - 1) or run.row_df > MOST_ROW_DF:
            expected = f"a multiple of {len(run.starts) - 1}, starts less one, up to {MOST_ROW_DF}"
            yield _finding(("runs", index, "row_df"), expected, str(run.row_df)[:20])


def _run_findings(runs: tuple[NoiseRun, ...]) -> Iterator[Finding]:
    """Each run is of its own starts, and counts once: a packet runs once, so its second seal is a copy."""
    seen: set[str] = set()
    for index, run in enumerate(runs):
        yield from _differs(("runs", index, "start_sd_percent"), log_sd_of_starts(run.starts), run.start_sd_percent)
        for name in ("seal_sha256", "packet_sha256"):
            if (value := getattr(run, name)) in seen:
                yield _finding(("runs", index, name), "each run once", f"{run.run} again")
                break
            seen.add(value)
        legs = [start.leg for start in run.starts]
        if len(set(legs)) < len(legs):
            yield _finding(("runs", index, "starts"), "each leg once", ", ".join(legs))


def _differs(path: tuple[str | int, ...], expected: float, got: str) -> Iterator[Finding]:
    if abs(log_of_percent(got) - expected) > SAME_WITHIN * max(expected, SAME_WITHIN):
        yield _finding(path, percent_of_log(expected), got)


def _finding(path: tuple[str | int, ...], expected: str, got: str) -> Finding:
    return Finding(path, expected, got, "pool the sealed runs anew with `labctl power pool`", Code.WRONG_VALUE)
