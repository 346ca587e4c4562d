"""The gates of a component run that look at what a worker wrote; each is given the gate to fill and one card."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from . import component_tensors as tensors
from .gate_findings import Gate
from .sealed_files import Doc, sha256

CONDITIONS = {"cpu": "jit_trace", "nvidia": "cuda_graph", "intel": "xpu_graph"}
MAPPED = re.compile(rb"(?m)^([0-9a-f]{1,16})-([0-9a-f]{1,16}) [r-][w-][x-][sp-] ")
OPERAND_BELOW = 1_000_003
SEED_BITS = 63
SIDES = ("control", "candidate")
TELLING_BYTES = 16  # smaller tensors may be zero, or alike in two rows, by chance


@dataclass(slots=True)
class Card:
    """What one worker wrote, and what it is held against."""

    leg: str
    prereg: Doc
    pre_import: Doc
    rows: list[Doc]
    record: Doc
    maps: bytes

    def named(self, row: Doc) -> str:
        """How a verdict calls a row."""
        return f"{self.leg} {row['arm']} row {row['row']} ({row['case']}, repeat {row['repeat']})"

    def all_rows(self) -> list[Doc]:
        """The rows of cases, then those of inert microcases."""
        return [*self.rows, *(one["row"] for one in self.record["microcases"] if one["kind"] == "must_stay_inert")]

    def seed_of(self, arm: str, case: str, repeat: int) -> int:
        """The seed that a row, or the call of a microcase, must have."""
        place = self.leg.removeprefix("card"), arm, case, repeat
        return tensors.number_of(str(self.prereg["seed"]), *place) % (1 << SEED_BITS)


def complete_rows(gate: Gate, card: Card) -> None:
    """Every planned row, once, on the inputs that its seed gives, with every tensor."""
    prereg, record = card.prereg, card.record
    places = [
        (arm, one["name"], number) for arm in prereg["arms"] for one in prereg["cases"] for number in _repeats(card)
    ]
    found = [(row["arm"], row["case"], row["repeat"]) for row in card.rows]
    gate.same(card.leg, "rows", places, found)
    gate.same(card.leg, "row numbers", [*range(1, len(places) + 1)], [row["row"] for row in card.rows])
    names = [one["name"] for one in prereg["boundaries"]]
    for row in card.all_rows():
        where = card.named(row)
        gate.same(where, "boundaries", names, [one["name"] for one in row["boundaries"]])
        gate.same(where, "caches", [*range(tensors.cache_count(prereg))], [one["index"] for one in row["caches"]])
        gate.same(where, "seed", card.seed_of(row["arm"], row["case"], row["repeat"]), row["row_seed"])
        faults = [fault for drawn in row["inputs"] for fault in tensors.drawn_faults(drawn, row["row_seed"])]
        gate.same(where, "inputs that the seed does not give", [], faults)
        gate.holds(where, "at least one input", is_met=bool(row["inputs"]))
        digests = [drawn["tensor"]["sha256"] for drawn in row["inputs"]]
        gate.same(where, "inputs after both sides ran", digests, row["inputs_after"])
        _pairs_of(gate, where, row)
        first = {number: drawn["tensor"]["sha256"] for number, drawn in enumerate(record["caches"])}
        whole = {one["index"]: one["candidate"]["sha256"] for one in row["caches"]}  # all of it may be written
        kept = first if record["cache_layout"] else whole
        rest = [one["index"] for one in row["caches"] if one["rest_sha256"] != kept.get(one["index"])]
        gate.same(where, "caches changed beside the slots of the row", [], rest)
        for what, expected, observed in tensors.sample_faults(record, row, card.pre_import["nonce"]):
            gate.same(where, what, expected, observed)
    seed = (prereg["checkpoint"] or prereg)["seed"]
    faults = [fault for drawn in record["caches"] for fault in tensors.drawn_faults(drawn, seed)]
    gate.same(card.leg, "caches that the seed does not give", [], faults)
    stamps = [row[key] for row in card.rows for key in ("started_mono_ns", "ended_mono_ns")]
    stamps = [record["started_mono_ns"], *stamps, record["ended_mono_ns"]]
    gate.same(card.leg, "times of the rows", sorted(stamps), stamps)


def _repeats(card: Card) -> range:
    return range(1, card.prereg["repeats"] + 1)


def _pairs_of(gate: Gate, where: str, row: Doc) -> None:
    pairs = [*row["boundaries"], *row["caches"]]
    for pair in pairs:
        digests = [pair[side]["sha256"] for side in ("control", "candidate")]
        is_told = pair["first_difference"] is not None
        gate.same(where, f"{pair['name']}: a first difference", digests[0] != digests[1], is_told)
        gate.same(where, f"{pair['name']}: place and bits of its difference", [], _difference_faults(pair))
        zeros = [side for side in ("control", "candidate") if _is_zeros(pair[side])]
        gate.same(where, f"{pair['name']}: zeros only", [], zeros)
    both = {(pair["candidate"]["sha256"], pair["challenge_sha256"]) for pair in pairs}
    told = {digest for one in both for digest in one}
    gate.same(where, "digests, plain and challenged, one for one", 2 * len(both), len(told))


def _difference_faults(pair: Doc) -> list[str]:
    """Why a first difference is none that tensors of this form can have; those of two forms have bytes, no place."""
    first, control, candidate = pair["first_difference"], pair["control"], pair["candidate"]
    if first is None or any(control[key] != candidate[key] for key in ("shape", "dtype")):
        return []
    shape, bits = control["shape"], [first["expected_bits"], first["actual_bits"]]
    inside = [at < extent for at, extent in zip(first["index"], shape, strict=False)]
    faults = [] if len(first["index"]) == len(shape) and all(inside) else [f"no element of {shape}: {first['index']}"]
    digits = 2 * tensors.SIZES.get(control["dtype"], 0)
    faults += [f"not {digits} digits: {one}" for one in bits if len(one) != digits]
    faults += ["equal bits"] * (bits[0] == bits[1])
    return faults + ["more elements than there are"] * (first["differing_elements"] > prod(shape))


def _is_zeros(tensor: Doc) -> bool:
    size: int = tensor["bytes"]
    return size >= TELLING_BYTES and tensor["sha256"] == _zeros(size)


@lru_cache(maxsize=1024)
def _zeros(size: int) -> str:
    return sha256(bytes(size))


def fresh(gate: Gate, cards: list[Card]) -> None:
    """No two rows of the run were given or made the same."""
    seen: dict[tuple[str, str], list[str]] = {}
    for card in cards:
        for row in card.all_rows():
            told = [(f"boundary {one['name']}", one["control"]) for one in row["boundaries"]]
            told += [(f"cache {one['index']}", one["control"]) for one in row["caches"]]
            drawn = [one for one in row["inputs"] if one["draw"]["kind"] == "uniform"]
            told += [(f"input {one['tensor']['name']}", one["tensor"]) for one in drawn]
            for what, tensor in told:
                if tensor["bytes"] >= TELLING_BYTES:
                    seen.setdefault((what, tensor["sha256"]), []).append(card.named(row))
    gate.holds("run", "a tensor that is drawn or made anew", is_met=bool(seen))
    for (what, _), places in seen.items():
        gate.same(places[-1], f"rows with this {what}", 1, len(places))


def layouts(gate: Gate, card: Card) -> None:
    """Each tensor lies as its declaration makes it lie."""
    prereg, record = card.prereg, card.record
    declared = {one["name"]: one for one in prereg["boundaries"]}
    buffers = {one["name"]: one for one in prereg["buffers"]}
    first = dict(enumerate(record["caches"]))
    for row in card.all_rows():
        where, sizes = card.named(row), tensors.sizes_at(prereg, row["case"])
        for pair in (one for one in row["boundaries"] if one["name"] in declared):
            wanted = tensors.declared_view(prereg, declared[pair["name"]], row["case"])
            for side in ("control", "candidate"):
                _lies(gate, f"{where}, {pair['name']}, {side}", wanted, pair[side])
        for cache in (one for one in row["caches"] if one["index"] in first):
            wanted = tensors.lies(first[cache["index"]]["tensor"])
            for side in ("control", "candidate"):
                _lies(gate, f"{where}, {cache['name']}, {side}", wanted, cache[side])
        for place in (one for one in row["buffers"] if one["name"] in buffers):
            wanted = tensors.owner(buffers[place["name"]], sizes)
            size = _size(wanted)
            told = {**tensors.lies(place), "storage_bytes": place["storage_bytes"]}
            gate.same(f"{where}, buffer {place['name']}", "layout", {**wanted, "storage_bytes": size}, told)
        device = (record["device"] or {}).get("device")
        gate.same(where, "device of every tensor", {device}, {one["device"] for one in _every_tensor(row)})


def _lies(gate: Gate, where: str, wanted: Doc, tensor: Doc) -> None:
    gate.same(where, "layout", {**wanted, "bytes": _size(wanted)}, {**tensors.lies(tensor), "bytes": tensor["bytes"]})


def _size(layout: Doc) -> int:
    return prod(layout["shape"]) * tensors.SIZES.get(layout["dtype"], 0)


def _every_tensor(row: Doc) -> Iterator[Doc]:
    yield from (drawn["tensor"] for drawn in row["inputs"])
    yield from (pair[side] for pair in (*row["boundaries"], *row["caches"]) for side in ("control", "candidate"))
    yield from row["buffers"]


def pointers(gate: Gate, card: Card) -> None:
    """The candidate's buffers stay where they are, overlap nothing, and lie in memory that is mapped."""
    prereg, record = card.prereg, card.record
    owned = {(one["arm"], one["case"]): _addresses(one["buffers"]) for one in record["owned"]}
    of = {one["name"]: one["of"] for one in prereg["boundaries"]}
    for row in card.rows:
        where, own = card.named(row), _addresses(row["buffers"])
        gate.same(where, "the candidate's own buffers", sorted(one["name"] for one in prereg["buffers"]), sorted(own))
        gate.same(where, "their addresses, as at the end", owned.get((row["arm"], row["case"]), {}), own)
        for pair in row["boundaries"]:
            storage = own.get(of.get(pair["name"], ""), (None, None))[0]
            gate.same(where, f"storage of {pair['name']}", storage, pair["candidate"]["storage_ptr"])
            # On first use a buffer may be made where tensors of the control had just been freed.
            is_apart = row["repeat"] == 1 or pair["control"]["storage_ptr"] not in {one[0] for one in own.values()}
            gate.holds(where, f"the control's {pair['name']} lies elsewhere", is_met=is_apart)
        near = [*_named(row["buffers"], ""), *_named([one["tensor"] for one in row["inputs"]], "input ")]
        gate.same(where, "storages that overlap", [], tensors.overlapping(near))
    for inert in (one for one in record["microcases"] if one["kind"] == "must_stay_inert"):
        gate.same(
            card.named(inert["row"]),
            "own buffers at an inert size",
            ([], []),
            (inert["owned"], inert["row"]["buffers"]),
        )
    lasting = [pair for one in record["owned"] for pair in _named(one["buffers"], f"{one['arm']} {one['case']} ")]
    lasting += _named(record["weights_after"], "weight ")
    caches = _named([one["tensor"] for one in record["caches"]], "cache ")
    gate.same(card.leg, "storages that overlap", [], tensors.overlapping([*lasting, *caches]))
    first = _caches(card.rows[0]) if card.rows else []
    for row in card.all_rows():
        kept = {name: (at["storage_ptr"], at["data_ptr"]) for name, at in first}
        told = {name: (at["storage_ptr"], at["data_ptr"]) for name, at in _caches(row)}
        moved = [name for name in kept.keys() & told.keys() if kept[name] != told[name]]
        gate.same(card.named(row), "caches that are not where they were in the first row", [], sorted(moved))
    gate.same(card.leg, "storages that overlap those of caches", [], tensors.overlapping([*lasting, *first]))
    made = [place for row in card.rows for place in row["buffers"]]
    made += [place for row in card.rows for _, place in _caches(row)]
    made += [pair["candidate"] for row in card.rows for pair in row["boundaries"]]
    _addresses_hold(gate, card, [*made, *(place for _, place in lasting)])


def _caches(row: Doc) -> list[tuple[str, Doc]]:
    return [(f"cache {one['index']} of the {side}", one[side]) for side in SIDES for one in row["caches"]]


def _addresses(places: list[Doc]) -> dict[str, tuple[int, int]]:
    return {one["name"]: (one["storage_ptr"], one["data_ptr"]) for one in places}


def _named(places: list[Doc], before: str) -> list[tuple[str, Doc]]:
    return [(f"{before}{one['name']}", one) for one in places]


def _addresses_hold(gate: Gate, card: Card, places: list[Doc]) -> None:
    spans = sorted((int(low, 16), int(high, 16)) for low, high in MAPPED.findall(card.maps))
    joined: list[list[int]] = []
    for low, high in spans:
        if joined and low <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], high)
        else:
            joined.append([low, high])
    gate.knows(joined or None, card.leg, "a list of the memory that was mapped")
    for place in places:
        start, end = place["storage_ptr"], place["storage_ptr"] + place["storage_bytes"]
        first = start + place["storage_offset"] * tensors.SIZES.get(place["dtype"], 0)
        gate.same(card.leg, f"address of {place['name']}", first, place["data_ptr"])
        if joined:
            is_met = start > 0 and any(low <= start and end <= high for low, high in joined)
            gate.holds(card.leg, f"{place['name']} at {start:#x} in mapped memory", is_met=is_met)


def weights_unchanged(gate: Gate, card: Card) -> None:
    """The weights are drawn from the registered seed, are those of the pin, and stay so."""
    record, checkpoint = card.record, card.prereg["checkpoint"]
    before = [one["tensor"] for one in record["weights_before"]]
    faults = [fault for one in record["weights_before"] for fault in tensors.drawn_faults(one, checkpoint["seed"])]
    gate.same(card.leg, "weights that the seed does not give", [], faults)
    gate.same(card.leg, "weights after the rows", before, record["weights_after"])
    for when, weights in (("before", before), ("after", record["weights_after"])):
        lines = "".join(
            f"{one['sha256']}  {one['name']}\n" for one in sorted(weights, key=lambda one: str(one["name"]))
        )
        gate.same(card.leg, f"checkpoint {when} the rows", checkpoint["sha256"], sha256(lines.encode()))


def microcases(gate: Gate, card: Card) -> None:
    """What must be refused was, while really capturing; what must stay inert did; nothing changed."""
    registered, records = card.prereg["microcases"], card.record["microcases"]
    sides = [[(one["kind"], one["name"]) for one in each] for each in (registered, records)]
    gate.same(card.leg, "microcases", *sides)
    for said, record in zip(registered, records, strict=False):
        where = f"{card.leg} {said['name']}"
        if (said["kind"], record["kind"]) == ("must_raise", "must_raise"):
            _refused(gate, card, said, record)
        elif said["kind"] == record["kind"]:
            row = record["row"]
            gate.same(where, "arm and size", (said["arm"], said["name"]), (row["arm"], row["case"]))
            pairs = [*row["boundaries"], *row["caches"]]
            unequal = [one["name"] for one in pairs if one["control"]["sha256"] != one["candidate"]["sha256"]]
            gate.same(where, "boundaries and caches that differ", [], unequal)
        arm = record["arm"] if record["kind"] == "must_raise" else record["row"]["arm"]
        before, after = record["state_before"], record["state_after"]
        kept = ("buffers", "inputs", "caches") if record["kind"] == "must_raise" else ("buffers", "inputs")
        gate.same(where, "state after the call", [before[key] for key in kept], [after[key] for key in kept])
        rows = [row for row in card.rows if row["arm"] == arm]
        used = {f"{row['case']}.{name}": at for row in rows for name, at in _addresses(row["buffers"]).items()}
        gate.same(where, "buffers where the rows used them", used or None, _addresses(before["buffers"]))


def _refused(gate: Gate, card: Card, said: Doc, record: Doc) -> None:
    where, canary = f"{card.leg} {said['name']}", record["canary"]
    for key in ("arm", "case", "exception", "message"):
        gate.same(where, key, said[key], record[key])
    gate.same(where, "what captured", CONDITIONS[card.prereg["cards"]["vendor"]], record["condition"])
    looks = [(record[when]["asked"], record[when]["state"]) for when in ("before", "during", "after")]
    gate.same(where, "capturing before, during, after", [(False, False), (True, True), (False, False)], looks)
    gate.same(
        where, "operand of the replay", int(card.pre_import["nonce"][:8], 16) % OPERAND_BELOW, canary["replay_operand"]
    )
    sums = (canary["operand"] + 1, canary["replay_operand"] + 1)
    gate.same(where, "captured and replayed sums", sums, (canary["captured"], canary["replayed"]))
    gate.same(where, "seed", card.seed_of(said["arm"], said["name"], 1), record["row_seed"])
    faults = [fault for drawn in record["inputs"] for fault in tensors.drawn_faults(drawn, record["row_seed"])]
    gate.same(where, "inputs that the seed does not give", [], faults)


def rows_exact(gate: Gate, card: Card) -> None:
    """Every boundary and every cache of every row is equal, digest by digest."""
    equal = {"equal_boundaries": 0, "equal_caches": 0}
    for row in card.rows:
        for pair in (*row["boundaries"], *row["caches"]):
            digests = [pair[side]["sha256"] for side in ("control", "candidate")]
            equal["equal_caches" if "index" in pair else "equal_boundaries"] += digests[0] == digests[1]
            gate.same(_first_difference(card, row, pair), "raw bits", *_sides(pair))
    gate.note(card.leg, "count", **equal, assertions=sum(equal.values()))


def _sides(pair: Doc) -> tuple[str, str]:
    """Both digests; where they differ and the first difference is told, its bits."""
    first, digests = pair["first_difference"], (pair["control"]["sha256"], pair["candidate"]["sha256"])
    told = (first["expected_bits"], first["actual_bits"]) if first else digests
    return digests if digests[0] == digests[1] or told[0] == told[1] else told


def _first_difference(card: Card, row: Doc, pair: Doc) -> str:
    where, first = f"{card.named(row)}, boundary {pair['name']}", pair["first_difference"]
    axis = None if "index" in pair else tensors.layer_axis(card.prereg, pair["name"])
    if "index" in pair:
        where += f", layer {pair['index']}"
    if first and axis is not None and axis < len(first["index"]):
        where += f", layer {first['index'][axis]}"
    return f"{where}, index {first['index']}" if first else where
