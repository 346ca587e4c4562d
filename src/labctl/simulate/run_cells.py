"""Run a cell: draw its campaigns, let the real analyzer judge each from integer arrivals to the verdict, and count."""

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context

import numpy as np
from scipy.special import betaincinv

from labctl.analyze.gates.judge import judge_gates
from labctl.analyze.verdict import Case, decide_verdict
from labctl.records.verdict import VerdictKind
from labctl.simulate.cells import Cell, Floats, draw_rates
from labctl.simulate.rule_sets import RuleSet, naive_passes
from labctl.simulate.sound_leg import NS_PER_S
from labctl.simulate.sound_run import SoundRun

INTERVALS = 99
"""From the first token to the 100th."""
BATCH = 250
"""Campaigns that one process draws at a time; each batch has random numbers of its own."""
TAIL = 0.025


@dataclass(frozen=True, slots=True)
class Size:
    """How much is simulated."""

    campaigns: int
    """Campaigns a cell for the default rules and the naive comparison."""
    compared: int
    """The first so many also go through the seed's rules."""
    seed: int
    """Of all random numbers; the counts are the same for any number of processes."""

    def campaigns_of(self, rules: RuleSet) -> int:
        """How many campaigns a rule set judges, in whole batches."""
        asked = min(self.compared, self.campaigns) if rules is RuleSet.SEED else self.campaigns
        return min(math.ceil(asked / BATCH) * BATCH, self.campaigns)


@dataclass(frozen=True, slots=True)
class Count:
    """How many campaigns of a cell a rule set passed."""

    rules: RuleSet
    passed: int
    campaigns: int

    @property
    def rate(self) -> float:
        """The share that passed."""
        return self.passed / self.campaigns

    def interval(self) -> tuple[float, float]:
        """The exact (Clopper-Pearson) 95 % interval of the chance to pass."""
        failed = self.campaigns - self.passed
        lower = 0.0 if self.passed == 0 else float(betaincinv(self.passed, failed + 1, TAIL))
        upper = 1.0 if failed == 0 else float(betaincinv(self.passed + 1, failed, 1 - TAIL))
        return lower, upper


@dataclass(frozen=True, slots=True)
class Job:
    """One batch of a cell."""

    cell: Cell
    rules: tuple[RuleSet, ...]
    campaigns: int
    seed: tuple[int, ...]


def run_cells(
    cells: Sequence[Cell], rules: tuple[RuleSet, ...], size: Size
) -> Iterator[tuple[Cell, tuple[Count, ...]]]:
    """Each cell with the counts of every rule set, as it is done."""
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        for cell in cells:
            passed = dict.fromkeys(rules, 0)
            for found in pool.map(passes_of, list(_jobs(cell, rules, size))):
                for one, count in found.items():
                    passed[one] += count
            yield cell, tuple(Count(one, passed[one], size.campaigns_of(one)) for one in rules)


def passes_of(job: Job) -> dict[RuleSet, int]:
    """How many campaigns of a batch each rule set passes."""
    rates = draw_rates(job.cell, job.campaigns, np.random.default_rng(job.seed))
    return {rules: sum(_passes(rules, job.cell.order, campaign) for campaign in rates) for rules in job.rules}


def verdict_of(sound: SoundRun, rates: Floats) -> VerdictKind:
    """The real analyzer's verdict on a campaign with these rates, by start and prompt."""
    spans_ns = [[math.floor(INTERVALS * NS_PER_S / rate + 0.5) for rate in start] for start in rates.tolist()]
    evidence = sound.with_arrivals(spans_ns)
    verdict, _ = decide_verdict(Case(evidence, judge_gates(evidence, stopped=False), ()))
    return verdict


def _jobs(cell: Cell, rules: tuple[RuleSet, ...], size: Size) -> Iterator[Job]:
    """The batches of a cell; their random numbers depend on the seed, the cell's name and the batch."""
    name = tuple(cell.name.encode())
    for start in range(0, size.campaigns, BATCH):
        judged = tuple(one for one in rules if start < size.campaigns_of(one))
        yield Job(cell, judged, min(BATCH, size.campaigns - start), (size.seed, start, *name))


def _passes(rules: RuleSet, order: tuple[str, ...], rates: Floats) -> bool:
    if rules is RuleSet.NAIVE:
        return naive_passes(rates, order)
    return verdict_of(_sound(rules, order), rates) is VerdictKind.RECORD_CANDIDATE


@cache
def _sound(rules: RuleSet, order: tuple[str, ...]) -> SoundRun:
    return SoundRun.of(rules, order)
