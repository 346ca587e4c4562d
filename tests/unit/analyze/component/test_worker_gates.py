"""Each gate over one worker's records: sound records pass, and each spoiled field fails the gate that watches it."""

import base64
import json
from collections.abc import Callable

import pytest

from labctl.analyze.component.address_space import read_address_space
from labctl.analyze.component.complete_rows import judge_complete_rows, judge_fresh
from labctl.analyze.component.evidence import Worked
from labctl.analyze.component.layouts import judge_layouts
from labctl.analyze.component.microcases import judge_microcases
from labctl.analyze.component.pointers import judge_pointers
from labctl.analyze.component.rows_exact import judge_rows_exact
from labctl.analyze.component.weights import judge_first_caches, judge_weights
from labctl.analyze.gates.findings import Findings
from labctl.digest import sha256_hex
from labctl.frozen import canonical_json
from labctl.prereg.component_model import ComponentPreregistration
from labctl.records.component import ComponentRecord, PreImport
from labctl.records.component_row import read_rows
from labctl.standalone import component_gates as standalone
from labctl.standalone.gate_findings import Gate
from tests.fakes.component_records import HEAP, Doc, WorkerScript, maps, preregistration

Spoil = Callable[[WorkerScript], object]
GATES = ("complete_rows", "layouts", "pointers", "weights_unchanged", "microcases", "rows_exact")


def pair(script: WorkerScript, name: str = "projected_v", row: int = 4) -> Doc:
    found: Doc = next(one for one in script.rows[row]["boundaries"] if one["name"] == name)
    return found


def cache(script: WorkerScript, row: int = 4) -> Doc:
    found: Doc = script.rows[row]["caches"][1 - script.sampled_cache(row + 1)]
    return found


def refused(script: WorkerScript) -> Doc:
    found: Doc = script.component["microcases"][0]
    return found


def after(script: WorkerScript) -> Doc:
    found: Doc = script.component["weights_after"][0]
    return found


def before(script: WorkerScript) -> Doc:
    found: Doc = script.component["weights_before"][0]
    return found


def moved_weight(script: WorkerScript) -> None:
    after(script).update(data_ptr=HEAP + 0x200, storage_ptr=HEAP + 0x200)


def refused_input(script: WorkerScript) -> None:
    refused(script)["inputs"][0]["tensor"]["sha256"] = "0" * 64


def difference(index: list[int]) -> Doc:
    return {"index": index, "expected_bits": "3f80", "actual_bits": "3f81", "differing_elements": 1}


def input_digest(script: WorkerScript) -> None:
    script.rows[2]["inputs"][0]["tensor"]["sha256"] = script.rows[2]["inputs_after"][0] = "0" * 64


def zeros(script: WorkerScript) -> None:
    digest = sha256_hex(bytes(pair(script)["control"]["bytes"]))
    for side in ("control", "candidate"):
        pair(script)[side]["sha256"] = digest


def replayed_digest(script: WorkerScript) -> None:
    pair(script)["challenge_sha256"] = pair(script)["candidate"]["sha256"]


def other_sample(script: WorkerScript) -> None:
    script.rows[2]["sample"]["cache"] = 1 - script.sampled_cache(3)


def spoiled_sample(script: WorkerScript) -> None:
    raw = bytearray(base64.b64decode(script.rows[2]["sample"]["base64"]))
    raw[3] ^= 1
    script.rows[2]["sample"]["base64"] = base64.b64encode(raw).decode()


def repeated_boundary(script: WorkerScript) -> None:
    for side in ("control", "candidate"):
        pair(script, "rope_k", 5)[side]["sha256"] = pair(script, "rope_k", 4)["control"]["sha256"]


def first_cache(script: WorkerScript) -> None:
    """Every row agrees with another first content of the caches, but the seed does not give it."""
    for drawn in script.component["caches"]:
        drawn["tensor"]["sha256"] = "0" * 64
    rows = [*script.rows, script.component["microcases"][1]["row"]]
    for row in rows:
        for one in row["caches"]:
            one["rest_sha256"] = "0" * 64


def offset_zero(script: WorkerScript) -> None:
    side = pair(script)["candidate"]
    side.update(storage_offset=0, data_ptr=side["storage_ptr"])


def moved_buffer(script: WorkerScript) -> None:
    for at in (script.rows[4]["buffers"][1], pair(script, "normalized_states")["candidate"]):
        at.update(data_ptr=at["data_ptr"] + 0x400, storage_ptr=at["storage_ptr"] + 0x400)


def foreign_view(script: WorkerScript) -> None:
    at = pair(script, "normalized_states")["candidate"]
    at.update(data_ptr=at["data_ptr"] + 0x400, storage_ptr=at["storage_ptr"] + 0x400)


def control_in_candidate(script: WorkerScript) -> None:
    one = pair(script, "normalized_states", 5)
    one["control"].update({name: one["candidate"][name] for name in ("data_ptr", "storage_ptr")})


def overlapping_weight(script: WorkerScript) -> None:
    for at in (script.component["weights_after"][1], script.component["weights_before"][1]["tensor"]):
        at.update(data_ptr=HEAP, storage_ptr=HEAP)


def first_element(script: WorkerScript) -> None:
    for at in (script.component["weights_after"][0], script.component["weights_before"][0]["tensor"]):
        at.update(data_ptr=HEAP + 2)


def constant_pointers(script: WorkerScript) -> None:
    """A worker that makes up addresses, one for each buffer of each case, and tells them every time."""
    shift = 0x10_0000_0000
    places = [at for row in script.rows[4:] for at in row["buffers"]]
    places += [one["candidate"] for row in script.rows[4:] for one in row["boundaries"]]
    places += [at for one in script.component["owned"][2:] for at in one["buffers"]]
    for at in places:
        at.update(data_ptr=at["data_ptr"] + shift, storage_ptr=at["storage_ptr"] + shift)


def moved_cache(script: WorkerScript) -> None:
    at = cache(script)["candidate"]
    at.update(data_ptr=at["data_ptr"] + 0x1000, storage_ptr=at["storage_ptr"] + 0x1000)


def control_cache(script: WorkerScript) -> None:
    """A worker that shows the control's caches as the candidate's, in every row."""
    for row in (*script.rows, script.component["microcases"][1]["row"]):
        for one in row["caches"]:
            one["candidate"].update({name: one["control"][name] for name in ("data_ptr", "storage_ptr")})


def inert_buffers(script: WorkerScript) -> None:
    script.component["microcases"][1].update(owned=script.buffers("no_bias", "wide"))


def state_elsewhere(script: WorkerScript) -> None:
    for state in ("state_before", "state_after"):
        refused(script)[state]["buffers"][0]["data_ptr"] += 2


def inert_differs(script: WorkerScript) -> None:
    one = script.component["microcases"][1]["row"]["boundaries"][0]
    one["candidate"]["sha256"] = "0" * 64
    one["first_difference"] = difference([1, 2, 3])


def one_bit(script: WorkerScript) -> None:
    one = pair(script)
    one["candidate"]["sha256"] = "0" * 64
    one["first_difference"] = difference([1, 0, 1, 3])


def differs(script: WorkerScript, **changes: object) -> None:
    """A row that differs in a place, or in bits, that no such tensor has."""
    one_bit(script)
    pair(script)["first_difference"].update(changes)


SPOILS: list[tuple[str, str, Spoil]] = [
    ("complete_rows", "rows", lambda s: s.rows.pop()),
    ("complete_rows", "rows", lambda s: s.rows.__setitem__(slice(0, 2), [s.rows[1], s.rows[0]])),
    ("complete_rows", "boundaries", lambda s: s.rows[1]["boundaries"].pop()),
    ("complete_rows", "caches", lambda s: s.rows[1]["caches"].pop(1 - s.sampled_cache(2))),
    ("complete_rows", "seed", lambda s: s.rows[2].update(row_seed=1)),
    ("complete_rows", "stream of the draw", lambda s: s.rows[2]["inputs"][0].update(stream="1/states_in")),
    ("complete_rows", "digest of the tensor, drawn again", input_digest),
    ("complete_rows", "inputs after both sides ran", lambda s: s.rows[2]["inputs_after"].__setitem__(0, "0" * 64)),
    ("complete_rows", "a first difference", lambda s: pair(s).update(first_difference=difference([0, 0, 0, 0]))),
    ("complete_rows", "place and bits", lambda s: differs(s, index=[9, 0, 0, 0])),
    ("complete_rows", "place and bits", lambda s: differs(s, index=[0])),
    ("complete_rows", "place and bits", lambda s: differs(s, actual_bits="3f80")),
    ("complete_rows", "place and bits", lambda s: differs(s, actual_bits="3f", expected_bits="3e")),
    ("complete_rows", "place and bits", lambda s: differs(s, differing_elements=10**6)),
    ("complete_rows", "control of zeros only", zeros),
    ("complete_rows", "digests, plain and challenged, one for one", replayed_digest),
    ("complete_rows", "digest of what the row did not write", lambda s: cache(s).update(rest_sha256="0" * 64)),
    ("complete_rows", "a sample", lambda s: s.rows[2].update(sample=None)),
    ("complete_rows", "the cache of the sample", other_sample),
    ("complete_rows", "digests of the rebuilt cache", spoiled_sample),
    ("complete_rows", "times of the rows, one after the other", lambda s: s.rows[2].update(started_mono_ns=1)),
    ("complete_rows", "rows whose boundary rope_k has digest", repeated_boundary),
    ("complete_rows", "digest of the tensor, drawn again", first_cache),
    ("layouts", "storage offset", offset_zero),
    ("layouts", "stride", lambda s: pair(s, "normalized_states")["control"].update(stride=[4, 8, 1])),
    ("layouts", "shape", lambda s: pair(s, "normalized_states")["control"].update(shape=[1, 2, 8])),
    ("layouts", "type", lambda s: pair(s, "normalized_states")["control"].update(dtype="float16")),
    ("layouts", "bytes", lambda s: pair(s, "normalized_states")["control"].update(bytes=2)),
    ("layouts", "bytes of the storage", lambda s: s.rows[5]["buffers"][0].update(storage_bytes=999)),
    ("layouts", "device of every tensor", lambda s: pair(s)["control"].update(device="cuda:0")),
    ("layouts", "layout", lambda s: cache(s)["control"].update(stride=[1, 1, 1, 1])),
    ("pointers", "addresses of the candidate's buffers, as at the end", moved_buffer),
    ("pointers", "the candidate's own buffers", lambda s: s.rows[5]["buffers"].pop(1)),
    ("pointers", "storage of the candidate's view", foreign_view),
    ("pointers", "storage of the control", control_in_candidate),
    ("pointers", "own buffers at an inert size", inert_buffers),
    ("pointers", "storages that overlap", overlapping_weight),
    ("pointers", "address of the first element", first_element),
    ("pointers", "addresses of the caches, as in the first row", moved_cache),
    ("pointers", "storages that overlap those of caches", control_cache),
    ("pointers", "storage", constant_pointers),
    ("weights_unchanged", "digest of the checkpoint after the rows", lambda s: after(s).update(sha256="0" * 64)),
    ("weights_unchanged", "digest of the tensor, drawn again", lambda s: before(s)["tensor"].update(sha256="0" * 64)),
    ("weights_unchanged", "stream of the draw", lambda s: before(s).update(stream="1/norm")),
    ("weights_unchanged", "weights after the rows", moved_weight),
    ("microcases", "microcases", lambda s: s.component["microcases"].pop()),
    ("microcases", "seed", lambda s: refused(s).update(row_seed=5)),
    ("microcases", "exception", lambda s: refused(s).update(exception="ValueError")),
    ("microcases", "message", lambda s: refused(s).update(message=None)),
    ("microcases", "arm and case", lambda s: refused(s).update(case="w1")),
    ("microcases", "what captured", lambda s: refused(s).update(condition="cuda_graph")),
    ("microcases", "capturing before, during and after the call", lambda s: refused(s)["during"].update(state=False)),
    ("microcases", "operand of the replay", lambda s: refused(s)["canary"].update(replay_operand=5, replayed=6)),
    ("microcases", "captured and replayed sums", lambda s: refused(s)["canary"].update(replayed=42)),
    ("microcases", "digest of the tensor, drawn again", refused_input),
    ("microcases", "buffers after the call", lambda s: refused(s)["state_after"]["buffers"][0].update(sha256="0" * 64)),
    ("microcases", "caches after the call", lambda s: refused(s)["state_after"]["caches"][0].update(sha256="0" * 64)),
    ("microcases", "inputs after the call", lambda s: refused(s)["state_after"]["inputs"][0].update(sha256="0" * 64)),
    ("microcases", "buffers where the rows used them", state_elsewhere),
    ("microcases", "boundaries and caches that differ", inert_differs),
    ("rows_exact", "first element that differs", one_bit),
]  # fmt: skip


def worked(script: WorkerScript) -> Worked:
    files = script.files()
    return Worked(
        leg=script.leg,
        said=ComponentPreregistration.from_json(canonical_json(preregistration()), "prereg"),
        pre_import=PreImport.from_json(files["pre-import.json"], "pre-import"),
        rows=read_rows(files["rows.jsonl"], "rows"),
        record=ComponentRecord.from_json(files["component.json"], "component"),
    )


def judged(script: WorkerScript) -> dict[str, Findings]:
    found = {kind: Findings(kind, kind) for kind in GATES}
    card = worked(script)
    assert card.said.checkpoint is not None
    judge_complete_rows(found["complete_rows"], card)
    judge_first_caches(found["complete_rows"], card)
    judge_fresh(found["complete_rows"], [card])
    judge_layouts(found["layouts"], card)
    judge_pointers(found["pointers"], card, read_address_space(maps().decode().splitlines()))
    judge_weights(found["weights_unchanged"], card, card.said.checkpoint)
    judge_microcases(found["microcases"], card)
    judge_rows_exact(found["rows_exact"], card)
    return found


def failed_alone(script: WorkerScript) -> set[str]:
    """Kinds of the gates that fail in the analyzer that stands alone."""
    files = script.files()
    card = standalone.Card(
        leg=script.leg,
        prereg=ComponentPreregistration.from_json(canonical_json(preregistration()), "prereg").model_dump(mode="json"),
        pre_import=json.loads(files["pre-import.json"]),
        rows=[json.loads(line) for line in files["rows.jsonl"].splitlines()],
        record=json.loads(files["component.json"]),
        maps=maps(),
    )
    found = {kind: Gate(kind, kind) for kind in GATES}
    for kind, gate in found.items():
        getattr(standalone, kind)(gate, card)
    standalone.fresh(found["complete_rows"], [card])
    assert not [gap for gate in found.values() for gap in gate.gaps]
    return {kind for kind, gate in found.items() if gate.misses}


@pytest.mark.parametrize("card", [0, 1])
def test_sound_records_pass_every_gate(card: int) -> None:
    found = judged(WorkerScript(card))
    assert {kind: one.misses for kind, one in found.items() if one.misses} == {}
    assert all(one.checks and not one.gaps for one in found.values())
    figures = {one.name: one.value for one in found["rows_exact"].figures}
    assert failed_alone(WorkerScript(card)) == set()
    assert figures == {"equal_boundaries": "32", "equal_caches": "16", "assertions": "48"}


@pytest.mark.parametrize(("kind", "what", "spoil"), SPOILS, ids=[f"{kind}: {what}" for kind, what, _ in SPOILS])
def test_each_spoiled_field_fails_the_one_gate_that_watches_it(kind: str, what: str, spoil: Spoil) -> None:
    script = WorkerScript(1)
    spoil(script)
    found = judged(script)
    more = {"rows_exact"} if what == "place and bits" else set()  # a place is only told of tensors that differ
    assert {name for name, one in found.items() if one.misses} == {kind, *more}
    assert failed_alone(script) == {kind, *more}
    assert any(miss.what.startswith(what) for miss in found[kind].misses), found[kind].misses


def test_a_buffer_may_be_made_where_the_control_had_just_been() -> None:
    script = WorkerScript(1)
    one = pair(script, "normalized_states", 4)  # the first use of this size
    one["control"].update({name: one["candidate"][name] for name in ("data_ptr", "storage_ptr")})
    assert not any(found.misses for found in judged(script).values())
    assert failed_alone(script) == set()


def test_two_boundaries_of_a_row_may_be_equal_but_not_challenged_otherwise() -> None:
    script = WorkerScript(1)
    first, second = pair(script, "projected_k"), pair(script, "rope_k")
    for side in ("control", "candidate"):
        second[side]["sha256"] = first[side]["sha256"]
    assert failed_alone(script) == {"complete_rows"}
    second["challenge_sha256"] = first["challenge_sha256"]
    assert not any(found.misses for found in judged(script).values())
    assert failed_alone(script) == set()


def test_a_tensor_of_a_few_bytes_may_be_zero_and_alike_in_two_rows() -> None:
    script = WorkerScript(1)
    for row in (4, 5):
        for side in ("control", "candidate"):
            pair(script, "rope_k", row)[side].update(bytes=8, sha256=sha256_hex(bytes(8)))
    assert {name for name, one in judged(script).items() if one.misses} == {"layouts"} == failed_alone(script)


def test_one_bit_is_named_by_card_arm_row_boundary_layer_index_and_bits() -> None:
    script = WorkerScript(1)
    one_bit(script)
    (miss,) = judged(script)["rows_exact"].misses
    where = "card1 synthetic_bias row 5 (w1, repeat 1), boundary projected_v, layer 1, index [1, 0, 1, 3]"
    assert (miss.where, miss.expected, miss.observed) == (where, "bits 0x3f80", "bits 0x3f81")
