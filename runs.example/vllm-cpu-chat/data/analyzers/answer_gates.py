"""Gates on what the starts were and what they answered; each public function is named after a kind."""

import json
import re
from fractions import Fraction
from itertools import pairwise

from .gate_findings import Gate, compare
from .run_reading import Leg, Run, served_version, total
from .sealed_files import Doc

ZERO_BEFORE = ("requests_succeeded", "prompt_tokens", "generation_tokens", "requests_running", "requests_waiting")
SPECULATION = ("drafts", "draft_tokens", "accepted_tokens", "accepted_per_position")
MAX_CYCLE, MIN_CYCLES, MIN_TOKENS, FLAT_POSITIONS = 16, 3, 8, 4


def identity(gate: Gate, run: Run, _: Doc) -> None:
    """One server a start, ours, as registered, and the same one throughout."""
    values = set()
    for leg in run.legs:
        if not leg.order or not leg.process:
            gate.knows(None, leg.name, "the record of its process")
            continue
        gate.same(leg.name, "nonce of the order", run.nonce(leg.name), leg.order["nonce"])
        root, pairs = leg.process["root"], run.start_values(leg.order).items()
        values.add(tuple(sorted(pair for pair in pairs if pair[0] == "{python}" or ":" in pair[0])))
        gate.same(leg.name, "argv, environment", run.expected_start(leg.order), (root["argv"], root["environment"]))
        strangers = {*root["environment_other"], *root["environment"]} - set(run.packet["environment_allowed"])
        gate.same(leg.name, "names that are not allowed", (set(), []), (strangers, root["environment_other"]))
        _one_server(gate, run, leg, leg.process)
    gate.same("run", "distinct interpreters and models", len(values) and 1, len(values))
    boots = {leg.started["boot_id"] for leg in run.legs if leg.started} or {run.marker["host"]["boot_id"]}
    gate.same("run", "boot of every start", {run.marker["host"]["boot_id"]}, boots)
    for legs in (run.arm("A"), run.arm("B")):
        for leg in legs[1:]:
            mapped = [_mapped_files(one) for one in (legs[0], leg)]
            if gate.knows(None if None in mapped else mapped, leg.name, "a list of mapped files"):
                gate.same(leg.name, f"mapped files, as in {legs[0].name}", *mapped)
    _binary_origin(gate, run)
    spans = [(leg.started["mono_ns"], leg.exit["mono_ns"]) for leg in run.legs if leg.started and leg.exit]
    gate.holds("run", f"starts in turn: {spans}", is_met=all(one[1] < two[0] for one, two in pairwise(spans)))
    gate.checks = gate.checks if run.legs else 0


def _binary_origin(gate: Gate, run: Run) -> None:
    """Compiled files in which the arms differ come from the arm's own pinned folder alone."""
    treatment, folders = run.prereg["treatment"] or {}, {"A": set[str](), "B": set[str]()}
    for leg in run.legs if "binaries" in treatment else ():
        key = treatment["control" if leg.name[0] == "A" else "candidate"]
        lines = run.files.get(f"packet/inputs/binaries-{key}.sha256", b"").decode("utf-8", "replace").split("\n")
        listed = {line[66:] for line in lines if line}
        folder = run.start_values(leg.order).get("{binaries}") if leg.order and leg.maps is not None else None
        if gate.knows(folder, leg.name, "a folder of compiled files, or a list of maps"):
            folders[leg.name[0]].add(folder)
            text = (leg.maps or b"").decode("utf-8", "backslashreplace")
            mapped = {line.rpartition("\t")[0] for line in text.split("\n")}
            inside = {path.removeprefix(f"{folder}/") for path in mapped if path.startswith(f"{folder}/")}
            others = {path for path in mapped if not path.startswith(f"{folder}/")}
            names = {path.rpartition("/")[2] for path in listed}
            gate.holds(leg.name, f"a pinned file mapped from {folder}", is_met=bool(inside & listed))
            gate.same(leg.name, "files of its folder that no manifest lists", set(), inside - listed)
            strangers = {path for path in others if path.rpartition("/")[2] in names}
            gate.same(leg.name, "files of the set from elsewhere", set(), strangers)
    if "binaries" in treatment:
        gate.same("run", "folders that both arms had", set(), folders["A"] & folders["B"])
        gate.holds("run", f"one folder an arm: {folders}", is_met=all(len(known) <= 1 for known in folders.values()))


def _one_server(gate: Gate, run: Run, leg: Leg, process: Doc) -> None:
    name, root, ready, version = leg.name, process["root"], process["readiness"], served_version(process)
    found = re.fullmatch(run.engine["version_pattern"], version) if version is not None else None
    gate.holds(name, f"a registered engine version, {version}", is_met=found is not None)
    pids = {one["pid"] for one in (root, *process["tree"])}
    sockets = [*process["listeners"], *process["listeners_after"]]
    counts = (len(process["listeners"]), len(process["listeners_after"]), len({one["inode"] for one in sockets}))
    gate.same(name, "listening sockets before and after, the same one", (1, 1, 1), counts)
    gate.same(name, "sockets of others", [], [one for one in sockets if not pids & set(one["owner_pids"])])
    gate.same(name, "root process after the last prompt", [root["start_ticks"]], process["roots_after"])
    gate.same(name, "process start", *(total(one, "process_start_time") for one in leg.counters or ({}, {})))
    if leg.postflight:
        left = [leg.postflight[key] for key in ("processes_left", "listeners_left", "shared_memory_left")]
        gate.same(name, "processes, listeners and shared memory left", [[], [], []], left)
        rows = [row.lines[event][0]["mono_ns"] for row in leg.rows for event in ("connect_started", "closed")]
        stamps = [ready["ready_mono_ns"], *rows, leg.postflight["stop_signal_mono_ns"]]
        gate.same(name, "rows between ready and stop, one after the other", sorted(stamps), stamps)
    nonce = run.nonce(name) if any("{nonce}" in one for one in run.prereg["service"]["command"]) else ""
    gate.holds(name, f"nonce {nonce} in the order and the served model", is_met=nonce in ready["served_model"])
    models = {model for row in leg.rows for model in row.answer.models} or {ready["served_model"]}
    gate.same(name, "model of every event", {ready["served_model"]}, models)


def complete_rows(gate: Gate, run: Run, _: Doc) -> None:
    """Every prompt has a row, and no row has a fault."""
    for leg in run.legs:
        gate.same(leg.name, "rows", len(run.prompts or leg.rows or "?"), len(leg.rows))
        for row in leg.rows:
            gate.same(f"{leg.name} row {row.number}", "faults", [], row.faults + row.doubts)


def cold(gate: Gate, run: Run, said: Doc) -> None:
    """No start had answered anything before, and none used what it had kept."""
    for leg in run.legs:
        for row in leg.rows:
            cached = row.answer.usages[0]["cached"] if row.answer.usages else None
            if gate.knows(cached, f"{leg.name} row {row.number}", "cached tokens of the usage"):
                gate.same(f"{leg.name} row {row.number}", "cached tokens", said["cached_tokens"], cached)
        if gate.knows(leg.counters, leg.name, "counters"):
            _cold_counters(gate, run, leg, said["requests_per_start"])


def _cold_counters(gate: Gate, run: Run, leg: Leg, asked: int) -> None:
    before, after = leg.counters or ({}, {})
    for name in ZERO_BEFORE:
        if gate.knows((name in {*before, *after, *run.off}) or None, leg.name, f"counter {name}"):
            gate.same(leg.name, f"{name} before", 0, total(before, name) or 0)
    for name in ("prefix_cache_hits", "preemptions"):
        if gate.knows(grown := leg.grown(name, run.off), leg.name, f"counter {name}"):
            gate.same(leg.name, f"{name} during the start", 0, grown)
    if gate.knows(requests := total(after, "requests_succeeded"), leg.name, "counter requests_succeeded"):
        gate.same(leg.name, "requests after", asked, requests)
        gate.note(leg.name, "requests", requests=requests)
        ends = [(dict(labels), value) for labels, value in after["requests_succeeded"].items()]
        bad = sum(value for end, value in ends if end.get("finished_reason") in ("abort", "error"))
        gate.same(leg.name, "requests that ended badly", 0, bad)


def exact_tokens(gate: Gate, run: Run, _: Doc) -> None:
    """Every row equals the teacher, or the first control start."""
    controls = run.arm("A") if run.prereg["oracle"] == "first_control" else []
    taught = [row.told for row in controls[0].rows] if controls else run.taught
    expected = taught if any(leg.rows for leg in run.legs) else None  # nothing equals nothing: no proof
    if gate.knows(expected, "run", "a row, a teacher or a first control start"):
        compare(gate, run.legs, expected)
        long = [row.answer.ids for leg in run.legs for row in leg.rows if len(row.answer.ids) >= MIN_TOKENS]
        filled = [any(i[n:] == i[:-n] for n in range(1, 1 + min(MAX_CYCLE, len(i) // MIN_CYCLES))) for i in long]
        gate.note("", "rows", degenerate_rows=sum(filled))  # one token or a short cycle fills them


def cross_leg_exact(gate: Gate, run: Run, _: Doc) -> None:
    """Every start equals the first."""
    if gate.knows((any(leg.rows for leg in run.legs) and run.legs[1:]) or None, "run", "a second start"):
        compare(gate, run.legs[1:], [row.told for row in run.legs[0].rows])


def accounting(gate: Gate, run: Run, _: Doc) -> None:
    """Usage, counters and token ids are of one story."""
    for leg in run.legs:
        for row in leg.rows:
            where, usage, prompts = f"{leg.name} row {row.number}", row.answer.usages[:1], row.answer.prompts
            is_there = gate.knows(usage or None, where, "usage")
            if is_there and gate.knows(prompts or None, where, "prompt token ids"):
                gate.same(where, "prompt token ids", usage[0]["prompt"], len(prompts[0]))
            if is_there:
                gate.same(where, "token ids", usage[0]["completion"], len(row.answer.ids))
        tokens = sum(len(row.answer.ids) for row in leg.rows)
        prompt_tokens = sum(len(ids) for row in leg.rows for ids in row.answer.prompts)
        for name, expected in (("generation_tokens", tokens), ("prompt_tokens", prompt_tokens)):
            if gate.knows(grown := leg.grown(name, run.off), leg.name, f"counter {name}"):
                gate.same(leg.name, f"growth of {name} against the rows", expected, grown)
                gate.note(leg.name, "tokens", **{name: grown})
        _speculation(gate, run, leg, tokens)


def _speculation(gate: Gate, run: Run, leg: Leg, tokens: int) -> None:
    known, name = [leg.grown(one, run.off) for one in SPECULATION], leg.name
    length, is_lookup = drafting(run, leg)
    held = {one for side in leg.counters or () for one in side}
    is_lacking = None in known or (length and not held.issuperset(SPECULATION))
    if not gate.knows(None if is_lacking else known, name, "a speculation counter"):
        return
    drafts, proposed, accepted, by_position = counts = [one or Fraction(0) for one in known]
    if not length:
        gate.same(name, "draft rounds without speculation", 0, drafts)
        return
    is_met = drafts <= proposed <= drafts * length if is_lookup else proposed == drafts * length
    gate.holds(name, f"{proposed} tokens of {drafts} drafts of {length}", is_met=is_met)
    gate.same(name, "accepted tokens over positions", accepted, by_position)
    gate.holds(name, "at least one accepted token", is_met=accepted >= 1)
    # A round emits one token of its own and what was accepted; a row that reaches its limit cuts its last round.
    most = tokens + len(leg.rows) * length
    gate.holds(name, f"drafts and accepted tokens are at most {most}", is_met=drafts + accepted <= most)
    _survival(gate, leg, drafts)
    gate.note(name, "count", **dict(zip(SPECULATION[:3], counts, strict=False)))
    if proposed:
        gate.note(name, "share", acceptance_rate=accepted / proposed)
    if drafts:
        gate.note(name, "tokens", accepted_per_cycle=accepted / drafts, emitted_per_cycle=1 + accepted / drafts)
        if drafts > 0 and (seconds := leg.grown("request_decode_time_sum", run.off)) is not None:
            gate.note(name, "ms", cycle_ms=seconds * 1000 / drafts)


def _survival(gate: Gate, leg: Leg, drafts: Fraction) -> None:
    places: dict[str, Fraction] = {}
    for sign, counters in zip((-1, 1), leg.counters or (), strict=False):
        for labels, value in counters.get(SPECULATION[3], {}).items():
            place = dict(labels).get("position", "")
            places[place] = places.get(place, Fraction(0)) + sign * value
    survival = [places[place] for place in sorted(places, key=lambda place: (len(place), place))]
    positions = {str(number) for number in range(len(places))}
    gate.same(leg.name, "positions", positions, positions if {*places} == {""} else {*places})
    gate.same(leg.name, "survival never rises", sorted(survival, reverse=True), survival)
    if len(survival) >= FLAT_POSITIONS and survival[0] > 0:
        gate.note(leg.name, "share", survival_last_over_first=survival[-1] / survival[0])
    if drafts > 0:
        gate.note(leg.name, "share", **{f"survival_{at}": value / drafts for at, value in enumerate(survival)})


def _mapped_files(leg: Leg) -> set[str] | None:
    """What a start mapped, but for what it makes for itself under random names; None where that is not recorded."""
    if leg.order is None or leg.maps is None:
        return None
    own = (f"{leg.order['paths']['scratch']}/", "/dev/", "/memfd:", "[")
    paths = {line.rpartition("\t")[0] for line in leg.maps.decode("utf-8", "backslashreplace").split("\n")}
    return {path for path in paths if path and not path.startswith(own) and not path.endswith(" (deleted)")}


def drafting(run: Run, leg: Leg) -> tuple[int, bool]:
    """Tokens of a draft (0: no speculation), and whether it is a lookup, which may propose fewer."""
    argv, option = leg.order["argv"] if leg.order else [], run.engine["speculation_length_option"]
    texts = [value for name, value in pairwise(argv) if name == option]
    texts += [part.removeprefix(f"{option}=") for part in argv if part.startswith(f"{option}=")]
    try:
        asked = json.loads(texts[0])
        return int(asked["num_speculative_tokens"]), asked.get("method") == "ngram"
    except (ValueError, LookupError, TypeError, AttributeError):
        return 0, False
