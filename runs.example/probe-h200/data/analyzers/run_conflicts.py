"""Records of one run that contradict each other: packet, marker, starts, journal, outcome, phase answers."""

from collections.abc import Iterator

from .lanes import lane_contradictions
from .run_reading import FIRST_PAIR, Run
from .sealed_files import unequal
from .start_conflicts import host_contradictions, leg_contradictions, request_contradictions

STEPS = {
    "ready": {"leg_started": "running", "phase_answered": "ready", "phase_stopped": "stopped", "run_closed": "closed"},
    "opened": {"preflight_recorded": "ready"},
    "running": {"leg_closed": "ready"},
    "stopped": {"run_closed": "closed"},
}


def contradictions(run: Run) -> Iterator[str]:
    """Everything that two records say differently."""
    packet, marker = run.packet, run.marker
    said = (packet["kind"], run.order, packet["repository"]["commit"], packet["repository"]["tree_dirhash"])
    marked = tuple(marker[name] for name in ("kind", "order", "git_commit", "tree_dirhash"))
    digests = (run.digests["packet.json"], packet["prereg_yaml_sha256"])
    both = ("digests", digests, (marker["packet_sha256"], marker["prereg_sha256"]))
    yield from unequal("data/packet: marker", both, ("kind, order, commit, tree", said, marked))
    yield from lane_contradictions(run)
    yield from host_contradictions(run)
    for leg in run.legs:
        if not run.was_cut_short(leg):
            yield from leg_contradictions(run, leg)
            if leg.process:
                yield from request_contradictions(run, leg, leg.process)
    closed = [leg.name for leg in run.legs if leg.manifest_sha256]
    yield from journal_contradictions(run, closed, [leg.name for leg in run.legs])
    has_stopped = bool(run.happened("phase_stopped"))
    if has_stopped or run.happened("phase_answered"):
        pinned = sorted((one["name"], one["sha256"]) for one in packet["analyzers"])
        told = sorted((one["analyzer"], one["analyzer_sha256"]) for one in run.answers)
        may_continue = all(answer["continue"] for answer in run.answers)
        yield from unequal("data/phase1", ("answers", pinned, told), ("continue", not has_stopped, may_continue))
        manifests = {leg.folder: leg.manifest_sha256 for leg in run.legs[:FIRST_PAIR]}
        yield from unequal("data/phase1", *(("legs", manifests, answer["legs"]) for answer in run.answers))


def journal_contradictions(run: Run, with_manifest: list[str], there: list[str]) -> Iterator[str]:
    """Illegal steps, times that go back, and an end that the journal does not tell, given the legs that are there."""
    may_stop = (run.prereg.get("schedule") or {}).get("stop_after_first_pair", False)
    state, closed, answers, before_ns = "opened", 0, 0, 0
    for number, entry in enumerate(run.journal, start=1):
        event, leg, where = entry["event"], entry["leg"], f"data/journal.jsonl:{number}"
        is_due = may_stop and closed == FIRST_PAIR and not answers
        next_leg = run.order[closed] if closed < len(run.order) else None
        legal = {"leg_started": leg == next_leg and not is_due, "leg_closed": leg == next_leg, "phase_answered": is_due}
        legal |= {"phase_stopped": is_due, "run_closed": state == "stopped" or next_leg is None}
        following = "closed" if event == "run_aborted" and state != "closed" else STEPS.get(state, {}).get(event)
        if following is None or not legal.get(event, True):
            yield from unequal(where, ("step", "a legal one", f"{event} {leg} when {state}"))
            return
        state, closed, answers = following, closed + (event == "leg_closed"), answers + event.startswith("phase_")
        yield from unequal(where, ("time that goes on", max(before_ns, entry["mono_ns"]), entry["mono_ns"]))
        before_ns = entry["mono_ns"]
    wanted, surplus = run.order[:closed], list[str]()
    if run.outcome:
        yield from unequal("data/outcome.json", ("closed", run.happened("leg_closed"), run.outcome["legs_closed"]))
    if run.outcome and not run.is_aborted:  # a killed controller leaves its journal at any legal place
        surplus = [name for name in there if name not in wanted]
        sides = ("closed", run.outcome["outcome"] == "phase_stopped"), (state, bool(run.happened("phase_stopped")))
        yield from unequal("data/journal.jsonl", ("end, phase stop", *sides))
    lacking = sorted({*wanted} - {*with_manifest})
    yield from unequal("data/legs", ("legs not closed, legs too many", ([], []), (lacking, surplus)))
