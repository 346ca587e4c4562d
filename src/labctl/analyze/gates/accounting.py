"""Gate `accounting`: token ids, usage and counters tell one story, speculation included."""

import json
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from labctl.analyze.counters import CounterDelta
from labctl.analyze.evidence import LegEvidence, RunEvidence
from labctl.analyze.figures import figure
from labctl.analyze.gates.cold import counter_delta
from labctl.analyze.gates.findings import Findings
from labctl.analyze.speculation import Speculation, cycle_ms
from labctl.prereg.gate_kinds import Accounting, gate_id
from labctl.records.verdict import GateOutcome

FLAT_SURVIVAL = Fraction(9, 10)
FLAT_POSITIONS = 4
SURVIVAL_RATIO = "survival_last_over_first"
SPECULATION = ("drafts", "draft_tokens", "accepted_tokens", "accepted_per_position")
PROMPT_LOOKUP = "ngram"


@dataclass(frozen=True, slots=True)
class Drafting:
    """The speculation that a start's own arguments ask for."""

    tokens: int
    is_prompt_lookup: bool
    """A lookup that ends at the end of the text proposes fewer tokens, so there drafts x k is an upper bound."""


def judge_accounting(evidence: RunEvidence, gate: Accounting) -> GateOutcome:
    """Judge the sums of every start."""
    findings = Findings(gate_id(gate), gate.kind)
    for leg in evidence.legs:
        _judge_rows(findings, leg)
        delta = counter_delta(evidence, leg)
        if delta is None:
            findings.lacks(f"{leg.name}: no counters")
            continue
        _judge_tokens(findings, leg, delta)
        _judge_speculation(findings, leg, delta, drafting_of(evidence, leg))
    return findings.outcome()


def drafting_of(evidence: RunEvidence, leg: LegEvidence) -> Drafting | None:
    """What the start's argument list says about speculation; None where it asks for none or cannot be read."""
    argv = leg.order.argv if leg.order is not None else ()
    option = evidence.engine.speculation_length_option
    texts = [value for name, value in pairwise(argv) if name == option]
    texts += [part.removeprefix(f"{option}=") for part in argv if part.startswith(f"{option}=")]
    for text in texts:
        try:
            asked = json.loads(text)
            return Drafting(int(asked["num_speculative_tokens"]), asked.get("method") == PROMPT_LOOKUP)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return None
    return None


def _judge_rows(findings: Findings, leg: LegEvidence) -> None:
    for row in leg.rows:
        where = f"{leg.name} row {row.row}"
        if row.usage is None:
            findings.lacks(f"{where}: no usage")
            continue
        findings.equal("token ids against usage", where, row.usage.completion_tokens, len(row.token_ids))
        prompt_ids = row.prompt_token_ids
        if prompt_ids is None:
            findings.lacks(f"{where}: no prompt token ids")
        else:
            findings.equal("prompt token ids against usage", where, row.usage.prompt_tokens, len(prompt_ids))


def _judge_tokens(findings: Findings, leg: LegEvidence, delta: CounterDelta) -> None:
    sums = {
        "generation_tokens": sum(len(row.token_ids) for row in leg.rows),
        "prompt_tokens": sum(len(row.prompt_token_ids or ()) for row in leg.rows),
    }
    for field, expected in sums.items():
        grown = delta.grown(field)
        if grown is None:
            findings.lacks(f"{leg.name}: counter {field} is absent")
        else:
            findings.equal(f"growth of {field} against the rows", leg.name, expected, grown)
            findings.figures.append(figure(field, leg.name, grown, "tokens"))


def _judge_speculation(findings: Findings, leg: LegEvidence, delta: CounterDelta, drafting: Drafting | None) -> None:
    grown = {field: delta.grown(field) for field in SPECULATION}
    missing = sorted(field for field, value in grown.items() if value is None)
    if missing or (drafting is not None and any(delta.is_absent(field) for field in SPECULATION)):
        findings.lacks(f"{leg.name}: speculation counters are absent: {', '.join(missing) or 'all'}")
        return
    drafts, draft_tokens, accepted, per_position = (grown[field] or Fraction(0) for field in SPECULATION)
    if drafting is None:
        findings.equal("draft rounds without speculation", leg.name, 0, drafts)
        return
    bound = drafts * drafting.tokens
    is_met = drafts <= draft_tokens <= bound if drafting.is_prompt_lookup else draft_tokens == bound
    findings.holds(
        f"draft tokens of {drafts} rounds of {drafting.tokens}", leg.name, (bound, draft_tokens), is_met=is_met
    )
    findings.equal("sum of accepted tokens over positions", leg.name, accepted, per_position)
    findings.holds("accepted tokens", leg.name, ("at least 1", accepted), is_met=accepted >= 1)
    tokens = sum(len(row.token_ids) for row in leg.rows)
    # Each round emits one token of its own and what was accepted; a row that reaches its limit cuts the last round.
    most = tokens + len(leg.rows) * drafting.tokens
    findings.holds(
        "rounds and accepted tokens", leg.name, (f"at most {most}", drafts + accepted), is_met=drafts + accepted <= most
    )
    _judge_survival(findings, leg.name, delta, drafts)
    _add_rates(findings, leg.name, delta, (drafts, draft_tokens, accepted))


def _judge_survival(findings: Findings, where: str, delta: CounterDelta, drafts: Fraction) -> None:
    by_position = delta.grown_by_label("accepted_per_position", "position")
    found = sorted(by_position, key=lambda position: (len(position), position))
    positions = [str(number) for number in range(len(found))]
    if found not in ([""], positions):  # an engine without the label counts all positions in one sample
        findings.holds("positions of accepted tokens", where, (positions, found), is_met=False)
    survival = [by_position[position] for position in found]
    for position, (earlier, later) in enumerate(pairwise(survival), start=1):
        findings.holds(
            f"survival at position {position}", where, (f"at most {earlier}", later), is_met=later <= earlier
        )
    if len(survival) >= FLAT_POSITIONS and survival[0] > 0:
        findings.figures.append(figure(SURVIVAL_RATIO, where, survival[-1] / survival[0], "share"))
    if drafts > 0:
        findings.add(Speculation(drafts, Fraction(0), Fraction(0), tuple(survival)).survival_figures(where))


def _add_rates(
    findings: Findings, where: str, delta: CounterDelta, counts: tuple[Fraction, Fraction, Fraction]
) -> None:
    drafts, draft_tokens, accepted = counts
    findings.add(
        figure(name, where, value, "count")
        for name, value in (("drafts", drafts), ("draft_tokens", draft_tokens), ("accepted_tokens", accepted))
    )
    findings.add(Speculation(drafts, draft_tokens, accepted).rates(where))
    seconds = delta.grown("request_decode_time_sum")
    if drafts > 0 and seconds is not None:
        findings.figures.append(figure("cycle_ms", where, cycle_ms(seconds, drafts), "ms"))
