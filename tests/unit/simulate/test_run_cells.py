"""Simulated campaigns go through the real gates: what is drawn decides, and nothing else differs."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_ind

from labctl.analyze.gates.judge import judge_gates
from labctl.packet.lane import lucky_pass_chance
from labctl.prereg.designs import Design, order_of
from labctl.records.verdict import GateResult, VerdictKind
from labctl.simulate.catalogue import Section
from labctl.simulate.cells import Cell, Disturbance, draw_rates
from labctl.simulate.rule_sets import RuleSet, naive_passes
from labctl.simulate.run_cells import Count, Job, Size, passes_of, run_cells, verdict_of
from labctl.simulate.sound_run import SoundRun
from labctl.simulate.table import header, line, misses

ABBA = order_of(Design.ABBA)
REAL = (RuleSet.DEFAULT, RuleSet.SEED)


@pytest.mark.parametrize("rules", REAL)
@pytest.mark.parametrize("design", [Design.ABBA, Design.ABBABAAB])
def test_every_gate_but_those_of_time_passes_and_none_is_left_out(rules: RuleSet, design: Design) -> None:
    order = order_of(design)
    evidence = SoundRun.of(rules, order).with_arrivals([[10**9] * 13] * len(order))
    outcomes = {gate.id: gate.result for gate in judge_gates(evidence, stopped=False).outcomes}
    sound = {"identity", "complete_rows", "treatment", "cold", "clean_log", "exact_tokens", "cross_leg_exact"}
    assert {name for name, result in outcomes.items() if result is GateResult.PASSED} >= {*sound, "accounting"}
    assert outcomes.keys() > sound


@pytest.mark.parametrize("rules", REAL)
def test_a_large_effect_passes_and_a_loss_fails(rules: RuleSet) -> None:
    sound = SoundRun.of(rules, ABBA)
    gain, loss = (draw_rates(Cell(0.1, 0.1, effect=effect), 1, np.random.default_rng(1))[0] for effect in (5.0, -5.0))
    assert verdict_of(sound, gain) is VerdictKind.RECORD_CANDIDATE
    assert verdict_of(sound, loss) is VerdictKind.NEGATIVE_OR_INCONCLUSIVE


def test_the_analyzer_is_the_real_one_and_sees_a_token_that_differs() -> None:
    sound = SoundRun.of(RuleSet.DEFAULT, ABBA)
    rates = draw_rates(Cell(0.1, 0.1, effect=5.0), 1, np.random.default_rng(1))[0]
    legs = list(sound.evidence.legs)
    rows = list(legs[1].rows)
    rows[3] = replace(rows[3], token_ids=(*rows[3].token_ids[:-1], 77_777))
    legs[1] = replace(legs[1], rows=tuple(rows))
    spoiled = SoundRun(replace(sound.evidence, legs=tuple(legs)))
    assert verdict_of(spoiled, rates) is VerdictKind.DIAGNOSTIC_NOT_EXACT


def test_the_naive_comparison_is_a_t_test_of_all_rows() -> None:
    for seed in range(50):
        rates = draw_rates(Cell(0.2, 0.3), 1, np.random.default_rng(seed))[0]
        p = ttest_ind(rates[[1, 2]].ravel(), rates[[0, 3]].ravel(), alternative="greater").pvalue
        assert naive_passes(rates, ABBA) == (p < 0.05)


def test_a_batch_counts_the_same_whoever_draws_it_and_another_seed_differs() -> None:
    job = Job(Cell(0.4, 0.3, effect=1.0), (RuleSet.NAIVE,), 400, (1, 2))
    assert passes_of(job) == passes_of(job)
    assert passes_of(job) != passes_of(replace(job, seed=(2, 2)))


def test_the_default_rules_see_the_planned_effect_and_let_hardly_any_null_pass() -> None:
    wanted = passes_of(Job(Cell(0.2, 0.3, effect=2.0), (RuleSet.DEFAULT,), 200, (1,)))
    null = passes_of(Job(Cell(0.4, 1.0), (RuleSet.DEFAULT, RuleSet.NAIVE), 200, (1,)))
    assert wanted[RuleSet.DEFAULT] >= 190
    assert null[RuleSet.DEFAULT] <= 2
    assert null[RuleSet.NAIVE] > 5


def test_of_twenty_null_campaigns_some_pass_a_rule_of_five_percent_and_the_lane_says_how_likely_that_is() -> None:
    attempts = 20
    job = Job(Cell(0.2, 0.3), (RuleSet.DEFAULT, RuleSet.NAIVE), attempts, (1,))
    passed = passes_of(job)
    assert passed[RuleSet.NAIVE] > 0
    assert passed[RuleSet.DEFAULT] == 0
    assert lucky_pass_chance(Fraction(1, 20), attempts) == pytest.approx(0.6415, abs=1e-4)


def test_a_u_shaped_drift_passes_for_an_effect_with_four_starts_alone() -> None:
    four, eight = (
        passes_of(Job(Cell(0.2, 0.3, Disturbance.U_SHAPED, 1.5, design=design), (RuleSet.DEFAULT,), 60, (1,)))
        for design in (Design.ABBA, Design.ABBABAAB)
    )
    assert four[RuleSet.DEFAULT] > 30
    assert eight[RuleSet.DEFAULT] == 0


def test_processes_share_the_campaigns_of_a_cell() -> None:
    size = Size(campaigns=260, compared=100, seed=5)
    ((cell, counts),) = run_cells([Cell(0.2, 0.3, effect=2.0)], (RuleSet.SEED, RuleSet.NAIVE), size)
    assert cell.effect == 2.0
    assert {count.rules: count.campaigns for count in counts} == {RuleSet.SEED: 250, RuleSet.NAIVE: 260}
    assert all(count.rate > 0.9 for count in counts)


@pytest.mark.parametrize(("passed", "campaigns"), [(0, 20_000), (3, 20_000), (250, 500), (500, 500)])
def test_intervals_are_exact(passed: int, campaigns: int) -> None:
    expected = binomtest(passed, campaigns).proportion_ci(0.95, method="exact")
    assert Count(RuleSet.DEFAULT, passed, campaigns).interval() == pytest.approx((expected.low, expected.high))


def test_a_cell_that_is_off_its_bound_is_marked() -> None:
    section = Section("null", "No effect", (Cell(0.2, 0.3),), at_most=0.01)
    good, bad = Count(RuleSet.DEFAULT, 100, 20_000), Count(RuleSet.DEFAULT, 300, 20_000)
    seed = Count(RuleSet.SEED, 300, 4_000)
    assert not misses(section, good)
    assert misses(section, bad)
    assert not misses(section, seed)
    assert line(section, section.cells[0], (bad, seed)) == (
        "| 4 starts, start SD 0.2 %, row SD 0.3 % | 1.50 (1.34 to 1.68) **off** | 7.50 (6.70 to 8.36) |"
    )
    assert next(iter(header(section, (RuleSet.DEFAULT,)))) == "### No effect"
