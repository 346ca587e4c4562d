"""Gates on what each start said, counted and left behind; each public function is named after a kind."""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction

from .answer_gates import drafting
from .gate_findings import Gate, equals
from .row_figures import UNTOLD, Told, headline
from .run_reading import Leg, Run
from .sealed_files import Broken, Doc, document

DIGITS = re.compile(r"[0-9]{1,18}")
MAX_CYCLE, MIN_CYCLES, MIN_TOKENS = 16, 3, 8


def is_degenerate(ids: Sequence[int]) -> bool:
    """Whether one token or a short cycle fills a row."""
    lengths = range(1, 1 + min(MAX_CYCLE, len(ids) // MIN_CYCLES))
    return len(ids) >= MIN_TOKENS and any(ids[n:] == ids[:-n] for n in lengths)


def taught_rows(run: Run) -> list[Told] | None:
    """What every start must be equal to: the teacher, or the first control start."""
    controls = run.arm("A") if run.prereg["oracle"] == "first_control" else []
    return [row.told for row in controls[0].rows] if controls else run.taught


def degenerate_output(gate: Gate, run: Run, said: Doc) -> None:
    """No row is filled by one token or a short cycle."""
    gate.knows(any(leg.rows for leg in run.legs) or None, "run", "a row")
    for leg in run.legs if not gate.gaps else ():
        filled = [row.number for row in leg.rows if is_degenerate(row.answer.ids)]
        gate.holds(leg.name, f"rows filled by a cycle: {filled}", is_met=len(filled) <= said["max_rows"])
        gate.note(leg.name, "rows", degenerate_rows=len(filled))


def long_then_next(gate: Gate, run: Run, said: Doc) -> None:
    """A row after one of full length equals the teacher."""
    longest = run.prereg["workload"]["max_tokens"]

    def picked(leg: Leg) -> list[int]:
        return [at + 1 for at, row in enumerate(leg.rows[:-1]) if len(row.answer.ids) == longest]

    _judge_taught(gate, run, picked, said["min_boundaries"])


def rollover(gate: Gate, run: Run, said: Doc) -> None:
    """A row over a long prompt equals the teacher."""

    def picked(leg: Leg) -> list[int]:
        sizes = enumerate(sum(map(len, row.answer.prompts)) for row in leg.rows)
        return [at for at, size in sizes if size >= said["min_prompt_tokens"]]

    _judge_taught(gate, run, picked, said["min_rows"])


def _judge_taught(gate: Gate, run: Run, picked: Callable[[Leg], list[int]], at_least: int) -> None:
    if not gate.knows(taught := taught_rows(run), "run", "a teacher or a first control start"):
        return
    if not gate.knows(None if any(told[0] is UNTOLD for told in taught) else taught, "teacher", "a list of token ids"):
        return
    for leg in run.legs:
        places = picked(leg)
        if gate.knows(len(places) >= at_least or None, leg.name, f"one of {at_least} such rows"):
            equal = [
                at < len(taught) and bool(taught[at][0]) and equals(leg.rows[at].told, taught[at]) for at in places
            ]
            gate.same(
                leg.name, "rows that differ", [], [at + 1 for at, held in zip(places, equal, strict=True) if not held]
            )
            sound = [held and not leg.rows[at].faults for at, held in zip(places, equal, strict=True)]
            gate.note(leg.name, "rows", exact_rows=sum(sound))


def moving_difference(gate: Gate, run: Run, _: Doc) -> None:
    """A row's first difference lies at one place in all starts of an arm."""
    if not gate.knows(taught := taught_rows(run), "run", "a teacher or a first control start"):
        return
    if not gate.knows(None if any(told[0] is UNTOLD for told in taught) else taught, "teacher", "a list of token ids"):
        return
    for legs in (run.arm("A"), run.arm("B")):
        for at, told in enumerate(taught if len(legs) > 1 else ()):
            places = {_first_difference(leg, at, told[0]) for leg in legs}
            gate.holds(f"row {at + 1}", f"one first difference in equal starts: {places}", is_met=len(places) == 1)


def _first_difference(leg: Leg, at: int, wanted: object) -> int:
    if at >= len(leg.rows) or not isinstance(wanted, list):
        return -2
    ids = leg.rows[at].answer.ids
    pairs = enumerate(zip(ids, wanted, strict=False))
    return next(
        (n for n, (one, other) in pairs if one != other), -1 if len(ids) == len(wanted) else min(len(ids), len(wanted))
    )


def survival_shape(gate: Gate, run: Run, said: Doc) -> None:
    """Accepted tokens fall from position to position."""
    for leg in _speculating(gate, run):
        sides = [side.get("accepted_per_position", {}) for side in leg.counters or ()]
        if not gate.knows(sides if any(sides) else None, leg.name, "counter accepted_per_position"):
            continue
        places: dict[str, Fraction] = {}
        for sign, side in zip((-1, 1), sides, strict=True):
            for labels, value in side.items():
                place = dict(labels).get("position", "")
                places[place] = places.get(place, Fraction(0)) + sign * value
        counts = [places[place] for place in sorted(places, key=lambda place: (len(place), place))]
        if gate.knows(len(counts) >= said["min_positions"] or None, leg.name, "one of the draft positions"):
            gate.same(leg.name, "accepted tokens by position", sorted(counts, reverse=True), counts)
            gate.holds(leg.name, "at least one accepted at position 0", is_met=counts[0] > 0)
            share = counts[-1] / counts[0] if counts[0] > 0 else Fraction(0)
            is_met = share <= Fraction(said["max_last_over_first"])
            gate.holds(leg.name, f"the last position has {float(share)} of the first", is_met=is_met)
            if counts[0] > 0:
                gate.note(leg.name, "share", last_over_first=share)


def acceptance(gate: Gate, run: Run, said: Doc) -> None:
    """Enough of what is drafted is accepted."""
    for leg in _speculating(gate, run):
        known = [leg.grown(name, run.off) for name in ("draft_tokens", "accepted_tokens")]
        is_there = any("draft_tokens" in side for side in leg.counters or ())
        if gate.knows(known if is_there and None not in known else None, leg.name, "a speculation counter"):
            drafted, accepted = (one or Fraction(0) for one in known)
            percent = 100 * accepted / drafted if drafted else Fraction(0)
            is_met = percent >= Fraction(said["min_percent"])
            gate.holds(leg.name, f"{accepted} of {drafted} accepted", is_met=is_met)
            gate.note(leg.name, "percent", accepted_percent=percent)


def _speculating(gate: Gate, run: Run) -> list[Leg]:
    legs = [leg for leg in run.legs if drafting(run, leg)[0]]
    return legs if gate.knows(legs or None, "run", "a start that asks for speculation") else []


def kv_capacity(gate: Gate, run: Run, said: Doc) -> None:
    """The cache holds enough tokens, as many in each start of an arm."""
    for legs in (run.arm("A"), run.arm("B")):
        found = set()
        for leg in legs:
            if gate.knows(tokens := kv_capacity_tokens(run, leg), leg.name, "the capacity of the cache"):
                found.add(tokens)
                gate.holds(leg.name, f"capacity {tokens}", is_met=tokens >= said["min_tokens"])
                gate.note(leg.name, "tokens", kv_capacity_tokens=tokens)
        if found:
            gate.same("run", "distinct capacities in an arm", 1, len(found))


def kv_capacity_tokens(run: Run, leg: Leg) -> int | None:
    """Tokens that the cache holds: by the metric, else by the log's smallest word on it."""
    samples = (leg.after or {}).get("cache_config", {})
    product = Fraction(0)
    for labels, engines in samples.items():
        stated = dict(labels).get("kv_cache_size_tokens", "")
        numbers = [dict(labels).get(name, "") for name in ("num_gpu_blocks", "block_size")]
        numbers = [stated, "1"] if DIGITS.fullmatch(stated) else numbers  # blocks may be shared by layers of two kinds
        if not all(DIGITS.fullmatch(number) for number in numbers):
            product = Fraction(0)
            break
        product += engines * int(numbers[0]) * int(numbers[1])
    pattern = run.engine.get("kv_capacity_pattern")
    if product or pattern is None or leg.log is None:
        return int(product) or None
    texts = [found["tokens"].replace(b",", b"").decode("latin-1") for found in re.finditer(pattern.encode(), leg.log)]
    return min((int(text) for text in texts if DIGITS.fullmatch(text)), default=None)


def resident_memory(gate: Gate, run: Run, said: Doc) -> None:
    """The processes of a start stay within a size."""
    for leg in run.legs:
        if gate.knows(size := resident_bytes(run, leg), leg.name, "a sound sample of memory"):
            gate.holds(leg.name, f"{size} bytes resident", is_met=size <= said["max_bytes"])
            gate.note(leg.name, "bytes", resident_bytes=size)


def resident_bytes(run: Run, leg: Leg) -> int | None:
    """The largest sample of resident memory; None where there is none, or one cannot be read."""
    lines = run.files.get(f"legs/{leg.folder}/telemetry.jsonl", b"").splitlines()
    try:
        sizes = [document(line, "telemetry").get("server_rss_bytes") for line in lines]
    except Broken:
        return None
    known = [size for size in sizes if type(size) is int and size >= 0]
    return max(known) if known and len(known) == len(sizes) else None


def postflight(gate: Gate, run: Run, _: Doc) -> None:
    """Nothing was left, and nothing had to be killed."""
    for leg in run.legs:
        if gate.knows(leg.postflight, leg.name, "the record of what was left"):
            for name in ("killed", "processes_left", "listeners_left", "shared_memory_left"):
                gate.same(leg.name, name, [], leg.postflight[name])
            _device_memory(gate, run, leg, leg.postflight)


def _device_memory(gate: Gate, run: Run, leg: Leg, found: Doc) -> None:
    devices = run.packet["host"].get("devices") or {}
    watched = devices.get("idle_cards")
    if watched is None or watched["vendor"] == "cpu":
        return
    cards, slack = found.get("device_memory", []), devices["memory_slack_mib"] << 20
    gate.knows(cards if len(cards) >= watched["count"] else None, leg.name, "the memory of a watched card")
    for card in cards:
        is_back = card["after_bytes"] <= card["before_bytes"] + slack
        gate.holds(leg.name, f"memory of card {card['identity']} is back: {card}", is_met=is_back)


def roofline(gate: Gate, run: Run, said: Doc) -> None:
    """No start is faster than memory can be read."""
    limit = Fraction(said["bytes_per_second"]) / Fraction(said["bytes_per_token"])
    gate.note("", "tokens/s", roofline=limit)
    for leg in run.legs:
        if gate.knows(speed := headline(leg.rows, run.metric), leg.name, run.metric):
            percent = 100 * speed / limit
            is_met = percent <= Fraction(said["max_percent"])
            gate.holds(leg.name, f"headline {float(speed)} below {float(limit)}", is_met=is_met)
            gate.note(leg.name, "percent", roofline_percent=percent)
