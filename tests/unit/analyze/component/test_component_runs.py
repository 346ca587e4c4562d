"""Whole sealed component runs, judged by both analyzers, sound and spoiled in one place each."""

from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.agreement import disagreements
from labctl.analyze.verdict import exit_code_of
from labctl.records.leg import StopCause
from labctl.records.run import AbortCause
from labctl.records.verdict import CardResult, GateResult, Verdict, VerdictKind
from labctl.report.text import render_report, summarize
from tests.fakes.component_records import Doc
from tests.fakes.component_run import ComponentRun
from tests.fakes.run_builder import json_edit
from tests.fakes.two_verdicts import both

Spoil = Callable[[ComponentRun], object]


def judged(folder: Path, run: ComponentRun) -> Verdict:
    one, other = both(run, folder)
    assert [(gate.id, gate.result) for gate in one.gates] == [(gate.id, gate.result) for gate in other.gates]
    assert one.cards == other.cards
    assert disagreements(one, other) == ()
    return one


def failed(verdict: Verdict) -> set[str]:
    return {gate.kind for gate in verdict.gates if gate.result is not GateResult.PASSED}


def edit(name: str, change: Callable[[Doc], object]) -> Spoil:
    def change_document(document: dict[str, object]) -> None:
        change(document)

    return lambda run: run.edits.__setitem__(name, json_edit(change_document))


def order(**changes: object) -> Spoil:
    return edit("legs/02-card1/order.json", lambda document: document.update(changes))


def seal_of(**changes: object) -> Spoil:
    return lambda run: run.workers[1].pre_import.update(changes)


def record_of(**changes: object) -> Spoil:
    return lambda run: run.workers[1].component.update(changes)


def process(change: Callable[[Doc], object]) -> Spoil:
    return edit("legs/02-card1/process.json", change)


def postflight(**changes: object) -> Spoil:
    return edit("legs/02-card1/postflight.json", lambda document: document.update(changes))


def filtered(change: Callable[[Doc], object]) -> Spoil:
    return edit("legs/02-card1/discovery.json", change)


def one_bit(run: ComponentRun) -> None:
    pair = run.workers[1].rows[4]["boundaries"][2]
    pair["candidate"]["sha256"] = "0" * 64
    difference = {"index": [1, 0, 1, 3], "expected_bits": "3f80", "actual_bits": "3f81", "differing_elements": 1}
    pair["first_difference"] = difference


def silenced_log(run: ComponentRun) -> None:
    """The worker tells of no warning, but its log, which the leg kept, does."""
    run.workers[1].log = b"/opt/x.py:7: UserWarning: fell back to another kernel\n  f()\n"


def invented_warning(run: ComponentRun) -> None:
    run.workers[1].component["warnings"] = [{"category": "UserWarning", "message": "as ordered"}]


def silenced_filters(run: ComponentRun) -> None:
    run.workers[1].component["channels_after"]["warning_filters"] = ["ignore:None:Warning:None:0"]


def constant_addresses(run: ComponentRun) -> None:
    """Every buffer of every case at one made-up address."""
    worker = run.workers[1]
    places = [at for row in worker.rows for at in row["buffers"]]
    places += [at for one in worker.component["owned"] for at in one["buffers"]]
    for at in places:
        at.update(data_ptr=0x1000, storage_ptr=0x1000)


def pretended_capture(run: ComponentRun) -> None:
    """A worker that says it captured, with the sum of a program that ran eagerly."""
    run.workers[1].component["microcases"][0]["canary"]["replayed"] = 42


def without_torch(_: bytes) -> bytes:
    return b"7f0000000000-7f0002000000 rw-p 00000000 00:00 0 \n"


def after_leg(change: Callable[[Doc], object]) -> Spoil:
    """Another look at the card after the leg, or before it."""
    return edit("legs/02-card1/postflight.json", lambda document: change(document["card"]))


def newcomer(card: Doc) -> None:
    card["after"]["processes"].append({"pid": 77, "name": "other", "memory_bytes": None, "role": "client"})


LIMITS = ("timeout_s", "log_limit_bytes", "memory_limit_bytes")


def limit(name: str) -> Spoil:
    return edit("legs/02-card1/order.json", lambda document: document["limits"].update({name: 77}))


GATES: list[tuple[str, str, Spoil]] = [
    ("identity", "arguments", process(lambda document: document["root"]["argv"].append("--fast"))),
    ("identity", "environment", process(lambda document: document["root"]["environment"].update(LD_PRELOAD="x"))),
    ("identity", "other names", process(lambda document: document["root"]["environment_other"].append("X"))),
    ("identity", "process", process(lambda document: document["root"].update(pid=61))),
    ("identity", "restart", process(lambda document: document["root"].update(start_ticks=11))),
    ("identity", "children", process(lambda document: document["tree"].append(document["root"]))),
    ("identity", "seen arguments", seal_of(argv=["/opt/python", "worker.py"])),
    ("identity", "seen environment", seal_of(environment={"PATH": "/evil"})),
    ("identity", "interpreter", seal_of(executable_sha256="6" * 64)),
    ("identity", "isolation", seal_of(flags={"isolated": 0})),
    ("identity", "exported files", seal_of(code_sha256={"worker.py": "6" * 64})),
    ("identity", "boot", seal_of(boot_id="another")),
    ("identity", "left over", postflight(processes_left=[60])),
    ("identity", "ran on", postflight(outlived=[60])),
    ("identity", "killed", postflight(killed=[60])),
    ("linkage", "marker", seal_of(marker_sha256="6" * 64)),
    ("linkage", "packet", seal_of(packet_sha256="6" * 64)),
    ("linkage", "order", seal_of(order_sha256="6" * 64)),
    ("linkage", "order of the record", record_of(order_sha256="6" * 64)),
    ("linkage", "seal", record_of(pre_import_sha256="6" * 64)),
    ("linkage", "rows", record_of(rows_sha256="6" * 64)),
    ("linkage", "row count", record_of(rows=7)),
    ("linkage", "rows of the leg", edit("legs/02-card1/exit.json", lambda document: document.update(rows_completed=7))),
    ("linkage", "leg", record_of(leg="card0")),
    ("linkage", "process of the record", record_of(pid=61)),
    ("linkage", "torch too early", seal_of(modules=["sys", "torch"])),
    ("linkage", "torch mapped too early", seal_of(mapped_files=["/opt/lib/libtorch_cpu.so"])),
    ("linkage", "torch never", lambda run: run.edits.update({"legs/02-card1/maps.txt": without_torch})),
    ("linkage", "pauses", process(lambda document: document.update(pauses=2))),
    ("linkage", "rows after the look", process(lambda document: document.update(rows_seen=3))),
    ("linkage", "a look after the end", process(lambda document: document.update(observed_mono_ns=1))),
    ("linkage", "log", postflight(log_bytes=7)),
    ("linkage", "a warning that is not told", silenced_log),
    ("linkage", "a warning that never was", invented_warning),
    ("linkage", "filters", silenced_filters),
    ("devices", "two visible", filtered(lambda document: document["cards"].append(document["cards"][0]))),
    ("devices", "none visible", filtered(lambda document: document["cards"].clear())),
    ("devices", "another card", filtered(lambda document: document["cards"][0].update(identity="cpu:0", bus_id="0"))),
    ("devices", "not renumbered", filtered(lambda document: document["cards"][0].update(index=1))),
    ("devices", "problems", filtered(lambda document: document["problems"].append("it hangs"))),
    ("devices", "discovery of the seal", seal_of(discovery_sha256="6" * 64)),
    ("devices", "CPUs outside", process(lambda document: document["cpus"].append(0))),
    ("devices", "CPUs inside", lambda run: run.workers[1].component["device"].update(cpus=[0, 1])),
    ("devices", "visible to torch", lambda run: run.workers[1].component["device"].update(visible=2)),
    ("devices", "memory left", after_leg(lambda card: card["problems"].append("memory is held"))),
    ("devices", "another card afterwards", after_leg(lambda card: card["after"].update(identity="cpu:9"))),
    ("devices", "another card before", after_leg(lambda card: card["before"].update(identity="cpu:9"))),
    ("devices", "another number afterwards", after_leg(lambda card: card["after"].update(index=1))),
    ("devices", "somebody came", after_leg(newcomer)),
    ("devices", "no look after", postflight(card=None)),
    ("devices", "affinity before", lambda run: run.devices["filtered_by"].update(sched_affinity="0")),
    ("devices", "problems before", lambda run: run.devices["problems"].append("it hangs")),
    ("devices", "too few before", lambda run: run.devices["cards"].pop()),
    ("devices", "card of the order", order(card_index=0)),
    ("devices", "discovery of the order", order(discovery_sha256="6" * 64)),
    ("identity", "machine of the order", order(machine_id_sha256="6" * 64)),
    ("identity", "files of the order", order(inputs={})),
    *(("identity", f"{name} of the order", limit(name)) for name in LIMITS),
    ("identity", "interpreter of the order", order(interpreter="/usr/bin/python3")),
    ("linkage", "packet of the order", order(packet_sha256="6" * 64)),
    ("linkage", "nonce of the order", order(nonce="0" * 32)),
    ("linkage", "kind of the order", order(packet_kind="rehearsal")),
    ("microcases", "pretended capture", pretended_capture),
    ("rows_exact", "one bit", one_bit),
]  # fmt: skip


def test_a_sound_run_is_exact_on_each_card(tmp_path: Path) -> None:
    verdict = judged(tmp_path, ComponentRun())
    assert verdict.verdict.value == "exact_2_card_component_pass"
    assert exit_code_of(verdict) == 0
    assert verdict.cards is not None
    assert [(card.leg, card.identity, card.result.value) for card in verdict.cards] == [
        ("card0", "cpu:0", "exact_component_pass"),
        ("card1", "cpu:1", "exact_component_pass"),
    ]
    assert [card.assertions for card in verdict.cards] == [8 * 6, 8 * 6]
    assert summarize(verdict)[-1] == "assertions: 96"
    report = render_report(verdict)
    assert "| card1 | cpu:1 | exact_component_pass | 8 | 48 |" in report
    assert "every equality comes from `data/legs/*/rows.jsonl`" in report
    assert "an endpoint run" in verdict.does_not_authorize


@pytest.mark.parametrize(("kind", "what", "spoil"), GATES, ids=[f"{kind}: {what}" for kind, what, _ in GATES])
def test_each_spoiled_record_fails_the_one_gate_that_watches_it(
    kind: str, what: str, spoil: Spoil, tmp_path: Path
) -> None:
    run = ComponentRun()
    spoil(run)
    verdict = judged(tmp_path, run)
    assert failed(verdict) == {kind}, what
    of_evidence = kind in {"identity", "linkage", "devices", "complete_rows"}
    assert verdict.verdict is (VerdictKind.INVALID if of_evidence else VerdictKind.COMPONENT_FAILED)


@pytest.mark.parametrize(
    "lie", [constant_addresses, pretended_capture, silenced_log, invented_warning, silenced_filters]
)
def test_a_worker_that_prints_constants_in_place_of_observations_is_caught(lie: Spoil, tmp_path: Path) -> None:
    run = ComponentRun()
    lie(run)
    assert judged(tmp_path, run).verdict in (VerdictKind.COMPONENT_FAILED, VerdictKind.INVALID)


def test_a_worker_of_another_challenge_fails_wherever_the_nonce_counts(tmp_path: Path) -> None:
    run = ComponentRun()
    seal_of(nonce="0" * 32)(run)
    assert failed(judged(tmp_path, run)) == {"linkage", "complete_rows", "microcases"}


def test_one_bit_of_one_element_names_card_arm_row_boundary_layer_index_and_bits(tmp_path: Path) -> None:
    run = ComponentRun()
    one_bit(run)
    verdict = judged(tmp_path, run)
    assert exit_code_of(verdict) == 6
    where = "card1 synthetic_bias row 5 (w1, repeat 1), boundary projected_v, layer 1, index [1, 0, 1, 3]"
    said = f"{where}: first element that differs: expected bits 0x3f80, observed bits 0x3f81"
    assert verdict.because == (f"gate rows_exact failed: {said}",)
    assert verdict.cards is not None
    assert [card.result for card in verdict.cards] == [CardResult.EXACT, CardResult.FAILED]


@pytest.mark.parametrize(
    "name",
    ["order.json", "discovery.json", "process.json", "pre-import.json", "rows.jsonl", "component.json", "worker.log",
     "maps.txt", "postflight.json", "leg.log", "LEG_STARTED.json", "exit.json"],
)  # fmt: skip
def test_a_missing_file_of_a_completed_leg_makes_the_run_invalid(name: str, tmp_path: Path) -> None:
    run = ComponentRun(removed={f"legs/02-card1/{name}"})
    assert [verdict.verdict for verdict in both(run, tmp_path)] == [VerdictKind.INVALID] * 2


@pytest.mark.parametrize("name", ["order.json", "rows.jsonl", "component.json", "worker.log", "maps.txt"])
def test_a_file_changed_after_its_leg_was_closed_makes_the_run_invalid(name: str, tmp_path: Path) -> None:
    run = ComponentRun(late_edits={f"legs/02-card1/{name}": lambda data: data.replace(b"card1", b"card0") + b"\n"})
    assert [verdict.verdict for verdict in both(run, tmp_path)] == [VerdictKind.INVALID] * 2


def test_a_tool_that_is_not_the_pinned_one_makes_the_run_invalid(tmp_path: Path) -> None:
    run = ComponentRun(edits={"packet/inputs/worker.py": lambda data: data + b"# repaired\n"})
    assert [verdict.verdict for verdict in both(run, tmp_path)] == [VerdictKind.INVALID] * 2


@pytest.mark.parametrize("cause", [AbortCause.LEG_FAILED, AbortCause.OPERATOR, AbortCause.HOST_FAULT])
def test_a_leg_that_failed_names_its_card_and_later_cards_were_not_run(cause: AbortCause, tmp_path: Path) -> None:
    run = ComponentRun(causes={"card0": StopCause.HOST}, abort_cause=cause)
    verdict = judged(tmp_path, run)
    assert verdict.verdict is VerdictKind.INFRASTRUCTURE_ABORT
    assert exit_code_of(verdict) == 4
    assert ": in card0; " in verdict.because[0]
    assert not [line for line in verdict.because if "server" in line]
    assert "legs never started: card1" in verdict.because[0]
    assert verdict.cards is not None
    assert verdict.cards[1].result is CardResult.NOT_RUN


def test_a_worker_that_failed_is_named_with_its_card_and_its_words(tmp_path: Path) -> None:
    run = ComponentRun(causes={"card1": StopCause.HOST}, abort_cause=AbortCause.LEG_FAILED)
    failure = {"kind": "failed", "stage": "row", "row": 3, "exception": "RuntimeError", "message": "pointer drift"}
    run.workers[1].component["ending"] = {**failure, "traceback": []}
    verdict = judged(tmp_path, run)
    assert any("card1 (cpu:1): RuntimeError in stage row after 3 rows: pointer drift" in one for one in verdict.because)


@pytest.mark.parametrize("spoil", [None, one_bit])
def test_a_rehearsal_is_only_ever_a_rehearsal(spoil: Spoil | None, tmp_path: Path) -> None:
    run = ComponentRun(kind="rehearsal")
    if spoil is not None:
        spoil(run)
    verdict = judged(tmp_path, run)
    assert verdict.verdict is VerdictKind.REHEARSAL_ONLY
    assert exit_code_of(verdict) == (0 if spoil is None else 6)
    assert bool(verdict.authorizes) == (spoil is None)


def test_a_gate_of_another_name_is_there_under_its_name(tmp_path: Path) -> None:
    run = ComponentRun()
    run.registered["gates"][0]["id"] = "bits"
    assert [gate.id for gate in judged(tmp_path, run).gates if gate.kind == "rows_exact"] == ["bits"]


@pytest.mark.parametrize("vendor", ["nvidia", "intel"])
def test_cards_of_every_vendor_are_bound_by_their_stable_names(vendor: str, tmp_path: Path) -> None:
    verdict = judged(tmp_path, ComponentRun(vendor=vendor))
    assert verdict.verdict.value == "exact_2_card_component_pass", verdict.because
    assert not any("device graphs" in warning for warning in verdict.warnings)


@pytest.mark.parametrize("vendor", ["nvidia", "intel"])
@pytest.mark.parametrize("uuid", ["00000000-0000-0000-0000-00003a1e2c5f", "no UUID"])
def test_another_card_in_torch_is_not_taken_for_the_selected_one(vendor: str, uuid: str, tmp_path: Path) -> None:
    run = ComponentRun(vendor=vendor)
    run.workers[1].component["device"]["uuid"] = uuid
    assert failed(judged(tmp_path, run)) == {"devices"}


def test_bytes_of_an_intel_uuid_in_the_order_of_its_tool_are_another_card(tmp_path: Path) -> None:
    run = ComponentRun(vendor="intel")
    run.workers[1].component["device"]["uuid"] = run.devices["cards"][1]["identity"]
    assert failed(judged(tmp_path, run)) == {"devices"}


def test_a_graph_that_was_not_captured_on_the_card_does_not_count(tmp_path: Path) -> None:
    run = ComponentRun(vendor="nvidia")
    run.workers[1].component["microcases"][0]["condition"] = "xpu_graph"
    assert failed(judged(tmp_path, run)) == {"microcases"}


def test_a_worker_that_torch_showed_no_card_is_not_evaluated(tmp_path: Path) -> None:
    run = ComponentRun()
    record_of(device=None)(run)
    assert judged(tmp_path, run).verdict is VerdictKind.INVALID


def test_a_run_without_its_discovery_is_invalid(tmp_path: Path) -> None:
    run = ComponentRun(removed={"host/devices.json"})
    assert [verdict.verdict for verdict in both(run, tmp_path)] == [VerdictKind.INVALID] * 2


def test_a_later_attempt_says_so(tmp_path: Path) -> None:
    run = ComponentRun(packet={"attempt": 2, "follows": "1" * 64})
    assert any("attempt 2" in warning for warning in judged(tmp_path, run).warnings)


def test_a_component_without_caches_weights_and_microcases_is_judged_by_what_it_has(tmp_path: Path) -> None:
    run = ComponentRun()
    run.registered |= {"caches": None, "checkpoint": None, "microcases": []}
    kinds = ("rows_exact", "layouts", "pointers", "devices")
    run.registered["gates"] = [{"kind": kind} for kind in kinds]
    for worker in run.workers:
        emptied: Doc = {"caches": [], "cache_layout": None, "weights_before": [], "weights_after": [], "microcases": []}
        worker.component |= emptied
        for row in worker.rows:
            row |= {"caches": [], "sample": None}
    verdict = judged(tmp_path, run)
    assert verdict.verdict.value == "exact_2_card_component_pass", verdict.because
    assert {gate.kind for gate in verdict.gates} == {"identity", "linkage", "complete_rows", *kinds}


def test_caches_without_slots_may_be_written_whole(tmp_path: Path) -> None:
    run = ComponentRun()
    for worker in run.workers:
        worker.component["cache_layout"] = None
        rows = [*worker.rows, worker.component["microcases"][1]["row"]]
        for row in rows:
            row["sample"] = None
            for cache in row["caches"]:
                cache["rest_sha256"] = cache["candidate"]["sha256"]
    assert judged(tmp_path, run).verdict.value == "exact_2_card_component_pass"


RECORDS = ("order", "discovery", "process", "pre-import", "component", "postflight", "exit", "LEG_STARTED")


@pytest.mark.parametrize("name", [*(f"legs/02-card1/{record}.json" for record in RECORDS), "host/devices.json"])
def test_a_key_too_many_makes_a_record_none_of_ours(name: str, tmp_path: Path) -> None:
    run = ComponentRun(edits={name: json_edit(lambda document: document.update(extra=1))})
    assert [verdict.verdict for verdict in both(run, tmp_path)] == [VerdictKind.INVALID] * 2


@pytest.mark.parametrize("change", [lambda row: row.update(extra=1), lambda row: row.update(row="1")])
def test_a_line_of_another_form_makes_the_rows_none_of_ours(change: Callable[[Doc], object], tmp_path: Path) -> None:
    run = ComponentRun()
    change(run.workers[0].rows[2])
    assert [verdict.verdict for verdict in both(run, tmp_path)] == [VerdictKind.INVALID] * 2


def test_evidence_that_could_not_be_written_makes_the_run_invalid(tmp_path: Path) -> None:
    run = ComponentRun(causes={"card1": StopCause.HOST}, abort_cause=AbortCause.EVIDENCE)
    verdict = judged(tmp_path, run)
    assert verdict.verdict is VerdictKind.INVALID
    assert "the run was aborted over its own evidence" in verdict.because


@pytest.mark.parametrize(
    "kept", [(), ("order.json", "LEG_STARTED.json"), ("order.json", "LEG_STARTED.json", "rows.jsonl")]
)
def test_a_leg_that_was_killed_holds_what_it_reached(kept: tuple[str, ...], tmp_path: Path) -> None:
    run = ComponentRun(causes={"card0": StopCause.HOST}, abort_cause=AbortCause.CONTROLLER_KILLED)
    names = ("order.json", "LEG_STARTED.json", "discovery.json", "pre-import.json", "rows.jsonl", "component.json",
             "worker.log", "maps.txt", "process.json", "postflight.json", "exit.json", "leg.log",
             "leg-manifest-sha256.txt")  # fmt: skip
    run.removed = {f"legs/01-card0/{name}" for name in names if name not in kept}
    verdict = judged(tmp_path, run)
    assert verdict.verdict is VerdictKind.INFRASTRUCTURE_ABORT
    assert verdict.cards is not None
    assert {card.result for card in verdict.cards} == {CardResult.NOT_RUN}


def cache_of_sample(run: ComponentRun) -> None:
    """The sampled cache is not among the row's caches."""
    worker = run.workers[0]
    row = worker.rows[2]
    row["caches"].pop(worker.sampled_cache(3))


def short_sample(run: ComponentRun) -> None:
    run.workers[0].rows[2]["sample"]["base64"] = "AAAA"


def no_slots(run: ComponentRun) -> None:
    run.workers[0].component["cache_layout"]["slots_input"] = "nothing"


def float_slots(run: ComponentRun) -> None:
    run.workers[0].component["cache_layout"]["slots_input"] = "states_in"


@pytest.mark.parametrize("spoil", [cache_of_sample, short_sample, no_slots, float_slots])
def test_a_sample_that_cannot_be_rebuilt_fails(spoil: Spoil, tmp_path: Path) -> None:
    run = ComponentRun()
    spoil(run)
    assert failed(judged(tmp_path, run)) == {"complete_rows"}


def test_tensors_that_nobody_declared_are_no_layouts_of_ours(tmp_path: Path) -> None:
    run = ComponentRun()
    row = run.workers[0].rows[2]
    row["boundaries"][0]["name"] = "another"
    row["buffers"][0]["name"] = "another"
    row["caches"][1]["index"] = 9
    assert failed(judged(tmp_path, run)) >= {"complete_rows", "pointers"}


def test_gates_that_are_not_registered_are_not_judged(tmp_path: Path) -> None:
    run = ComponentRun()
    run.registered["gates"] = [{"kind": "rows_exact"}]
    for spoil in (constant_addresses, pretended_capture):
        spoil(run)
    verdict = judged(tmp_path, run)
    assert {gate.kind for gate in verdict.gates} == {"identity", "linkage", "devices", "complete_rows", "rows_exact"}
    assert verdict.verdict.value == "exact_2_card_component_pass"
