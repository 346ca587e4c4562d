"""Gate `consistency`: within the starts of this run the candidate is faster on the prompts; all of it is exact.

It says nothing of other starts: two starts that differ by chance differ on every prompt.
"""

from fractions import Fraction

from labctl.analyze.figures import figure
from labctl.analyze.gates.findings import Findings
from labctl.analyze.speeds import RunSpeeds
from labctl.analyze.statistics.ranks import is_walsh_average_above_zero, walsh_rank
from labctl.prereg.gate_kinds import gate_id
from labctl.prereg.statistics_gates import Consistency
from labctl.records.verdict import GateOutcome


def judge_consistency(speeds: RunSpeeds, gate: Consistency) -> GateOutcome:
    """Judge row wins of every pair, and the lower end of the Hodges-Lehmann interval over all starts."""
    findings = Findings(gate_id(gate), gate.kind)
    effects = speeds.row_effects()
    if effects is None:
        findings.gaps += [*speeds.gaps()] or ["the starts have different numbers of rows"]
        return findings.outcome()
    for pair in speeds.pairs():
        findings.figures.append(figure("row_wins", pair.name, pair.wins, f"of {pair.rows} rows"))
        wins = (f"at least {gate.min_row_wins} of {pair.rows}", pair.wins)
        findings.holds("row wins", pair.name, wins, is_met=pair.wins >= gate.min_row_wins)
    rank = walsh_rank(len(effects), Fraction(gate.confidence))
    if rank is None:
        findings.lacks(f"no interval of confidence {gate.confidence} from {len(effects)} rows")
        return findings.outcome()
    findings.figures.append(figure("hodges_lehmann_rank", "", rank, "rank"))
    ratios = [one.ratio for one in effects]
    is_above = is_walsh_average_above_zero(ratios, rank)
    sides = ("above 0", "above 0" if is_above else "0 or below")
    findings.holds("lower end of the Hodges-Lehmann interval", "run", sides, is_met=is_above)
    return findings.outcome()
