"""A folder that another lab left is looked at by the formulas of sealed runs, and every doubt is named."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.analyze.foreign.folder import MOST_FILES
from labctl.analyze.foreign.inspect_folder import inspect_folder
from labctl.errors import NotFound
from labctl.records.evidence_view import EvidenceView
from labctl.report.evidence_view import view_lines
from tests.fakes.run_builder import RunBuilder
from tests.fakes.start_folder import IDENTITY, LOG, StartFolder, bench, teachers

Spoil = Callable[[StartFolder], object]


def viewed(folder: Path, spoil: Spoil = lambda _: None) -> EvidenceView:
    start = StartFolder()
    spoil(start)
    return inspect_folder(start.write(folder))


def failing(view: EvidenceView) -> list[str]:
    return [check.what for check in view.checks if not check.is_met]


def put(name: str, data: bytes | None) -> Spoil:
    return lambda start: start.files.__setitem__(name, data)


def count(**changes: int) -> Spoil:
    return lambda start: start.counters.update(changes)


def set_to(name: str, value: object) -> Spoil:
    return lambda start: setattr(start, name, value)


def slower_median() -> bytes:
    document = bench()
    document["summary"] = {"tok_s_1_100_after_ttft": {"count": 2, "median": 1.0}}
    return json.dumps(document).encode()


def test_a_sound_start_gives_its_metrics_and_holds_every_check(tmp_path: Path) -> None:
    view = viewed(tmp_path)
    values = {one.name: one.value for one in view.metrics}
    assert failing(view) == []
    assert view.missing == ()
    assert view.is_sealed_run is False
    assert {name: values[name] for name in ("drafts", "accepted_per_cycle", "emitted_per_cycle", "survival_1")} == {
        "drafts": "150", "accepted_per_cycle": "1", "emitted_per_cycle": "2", "survival_1": "1/3",
    }  # fmt: skip
    assert (values["cycle_ms"], values["kv_capacity_tokens"], values["generation_tokens"]) == ("20", "12288", "300")


def test_both_conventions_stand_side_by_side_and_are_said_to_differ(tmp_path: Path) -> None:
    view = viewed(tmp_path)
    rates = {one.name: float(one.decimal) for one in view.metrics if one.name.startswith("decode_rate")}
    assert rates["decode_rate_conventional_1_100"] == pytest.approx(rates["decode_rate_legacy_100_1_100"] * 99 / 100)
    assert any("100 tokens over 99 intervals" in one.what for one in view.findings)


def test_warnings_of_the_log_are_findings_with_their_counts_and_names(tmp_path: Path) -> None:
    more = b"(APIServer pid=7) WARNING 01-01 Unknown vLLM environment variable detected: HOME\n"
    view = viewed(tmp_path, put("server.log", LOG + more))
    told = {one.what.partition(":")[0]: (one.count, one.what) for one in view.findings}
    assert told["unknown-environment-variable warnings"][0] == 2
    assert told["unknown-environment-variable warnings"][1].endswith("LAB_SWITCH, HOME")
    assert told["JIT-in-inference warnings"][0] == 1
    assert told["JIT-in-inference warnings"][1].endswith("add_kernel")
    assert any("carriage return" in one.what and one.count == 1 for one in view.findings)
    assert failing(view) == []


def test_each_rank_says_its_graphs(tmp_path: Path) -> None:
    assert viewed(tmp_path).topology == (
        "rank 0: captured 1 x graphs=4, eager_breaks=3",
        "rank 0: replayed 1 x graphs=4, eager_breaks=3",
        "rank 1: captured 1 x graphs=4, eager_breaks=3",
        "rank 1: replayed 1 x graphs=4, eager_breaks=3",
    )


def test_a_row_that_stood_still_once_is_named(tmp_path: Path) -> None:
    assert [one.what for one in viewed(tmp_path).findings if "stood still" in one.what] == [
        "sort stood still for 2010 ms after 1 chunks, once; its printed speed 47.847 is not that of a steady row"
    ]


def test_a_leg_that_says_that_it_is_no_record_is_believed(tmp_path: Path) -> None:
    view = viewed(tmp_path, put("identity.txt", IDENTITY + b"measurement_leg_not_record_leg=true\n"))
    assert [one.what for one in view.findings if one.where == "identity.txt"] == [
        "measurement_leg_not_record_leg=true: by its own word this leg is not a record leg"
    ]


SPOILS: list[tuple[Spoil, list[str]]] = [
    (count(generation_tokens=299), ["growth of generation_tokens against the rows"]),
    (count(prompt_tokens=61), ["growth of prompt_tokens against the rows"]),
    (count(draft_tokens=299), ["proposed tokens of rounds of 2"]),
    (count(preemptions=1), ["growth of preemptions"]),
    (count(prefix_cache_hits=16), ["growth of prefix_cache_hits"]),
    (set_to("positions", (50, 100)), ["survival over the positions"]),
    (set_to("positions", (100, 49)), ["sum of accepted tokens over positions"]),
    (set_to("is_exact", (True, False, True)), ["rows that equal the teacher, by the lab's comparator"]),
    (set_to("cached", (0, 0, 16)), ["rows with 0 cached tokens"]),
    (put("status.txt", b"status=FAIL\n"), ["status of the start"]),
    (put("cleanup-status.txt", b"stop_status=1\n"), ["statuses of the stop"]),
    (put("pre-idle.json", b'{"status":"busy"}'), ["snapshots of 3 that are not idle"]),
    (put("service-environment.txt", b"HOME=/x\n"), ["unknown variables that are not in the environment"]),
    (put("server.log", LOG.replace(b"graphs=4", b"graphs=5", 1)), ["graphs of 2 ranks"]),
    (put("server.log", LOG + b"Falling back to native\n"), ["lines of an exception, an error or a fallback"]),
    (put("bench.json", slower_median()), ["median of the rows, computed again"]),
]


@pytest.mark.parametrize(("spoil", "expected"), SPOILS)
def test_one_spoiled_thing_fails_exactly_its_check(spoil: Spoil, expected: list[str], tmp_path: Path) -> None:
    assert failing(viewed(tmp_path, spoil)) == expected


def test_a_request_that_was_aborted_fails_its_check_alone(tmp_path: Path) -> None:
    root = StartFolder().write(tmp_path)
    (tmp_path / "a-start.sha256").unlink()
    after = root / "metrics-after-suite.prom"
    well, badly = b'finished_reason="length"} ', b'finished_reason="abort"} '
    told = after.read_bytes().replace(well + b"3.0", well + b"2.0").replace(badly + b"0.0", badly + b"1.0")
    after.write_bytes(told)
    assert failing(inspect_folder(root)) == ["requests that ended in an error or were aborted"]


def test_a_changed_byte_is_found_by_the_list_beside_the_folder(tmp_path: Path) -> None:
    root = StartFolder().write(tmp_path)
    (root / "identity.txt").write_bytes(IDENTITY.replace(b"B1", b"B2"))
    assert failing(inspect_folder(root)) == ["files of 13 that differ from a-start.sha256"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bench.json", "bench.json: speeds"),
        ("exactness-vs-q1.json", "exactness-vs-q1.json: exactness"),
        ("metrics-after-suite.prom", "metrics-after-suite.prom: counters"),
        ("server.log", "server.log: fallbacks"),
        ("identity.txt", "identity.txt: what was run"),
        ("idle-interval/prestart-00.json", "idle-interval: 1 of 1 snapshots"),
    ],
)
def test_what_is_not_there_is_said_to_be_missing(name: str, told: str, tmp_path: Path) -> None:
    assert [one for one in viewed(tmp_path, put(name, None)).missing if one.startswith(told)] != []


@pytest.mark.parametrize("name", ["exactness-vs-q1.json", "bench.json", "pre-idle.json", "metrics-after-suite.prom"])
@pytest.mark.parametrize("data", [b"\xff\xfe", b"[]", b'{"rows": 3}', b"{", b'{"a":1,"a":2}', b""])
def test_a_file_of_another_form_is_a_finding_or_missing_and_never_a_crash(
    name: str, data: bytes, tmp_path: Path
) -> None:
    view = viewed(tmp_path, put(name, data))
    sound = viewed(tmp_path / "sound")
    assert (view.missing, view.findings, view.checks) != (sound.missing, sound.findings, sound.checks)


def taught(folder: Path, tokens: object, texts: object) -> EvidenceView:
    paths = [folder / "tokens.json", folder / "texts.json"]
    for path, document in zip(paths, (tokens, texts), strict=True):
        path.write_text(json.dumps(document))
    return inspect_folder(StartFolder().write(folder), paths)


def test_texts_and_tokens_of_the_client_are_held_against_the_teacher(tmp_path: Path) -> None:
    view = taught(tmp_path, *teachers())
    held = {check.what: check.observed for check in view.checks}
    assert failing(view) == []
    assert held["texts of the client that are those of texts.json"] == "3 of 3"
    assert held["rows of tokens of the client that are those of tokens.json"] == "1 of 1"


def test_a_text_and_a_token_that_differ_from_the_teacher_fail(tmp_path: Path) -> None:
    tokens, texts = teachers()
    tokens["rows"] = [{"prompt_id": "sort", "token_ids": [1]}, {"prompt_id": "join", "token_ids": [1]}]
    texts["rows"] = [{"prompt_id": "sort", "sha256": "0" * 64}]
    view = taught(tmp_path, tokens, texts)
    assert failing(view) == [
        "rows of tokens of the client that are those of tokens.json",
        "texts of the client that are those of texts.json",
        "texts of the client, and rows of texts.json",
    ]
    assert view.missing == ("token ids of 1 of 2 rows, to be held against tokens.json",)


@pytest.mark.parametrize("document", [[], {"rows": 1}, {"schema": "another", "rows": []}])
def test_a_teacher_of_another_form_is_a_finding(document: object, tmp_path: Path) -> None:
    view = taught(tmp_path, document, teachers()[1])
    assert [one.where for one in view.findings if one.where == "tokens.json"] == ["tokens.json"]


def test_a_teacher_that_is_no_json_is_a_finding(tmp_path: Path) -> None:
    teacher = tmp_path / "tokens.json"
    teacher.write_bytes(b"{")
    view = inspect_folder(StartFolder().write(tmp_path), [teacher])
    assert [one.where for one in view.findings if one.where == "tokens.json"] == ["tokens.json"]


def test_a_client_that_kept_neither_texts_nor_tokens_cannot_be_held_against_a_teacher(tmp_path: Path) -> None:
    paths = [tmp_path / "tokens.json", tmp_path / "texts.json"]
    for path, document in zip(paths, teachers(), strict=True):
        path.write_text(json.dumps(document))
    start = StartFolder(files={"bench.json": b'{"rows": []}'})
    missing = inspect_folder(start.write(tmp_path), paths).missing
    assert "token ids of 1 of 1 rows, to be held against tokens.json" in missing
    assert "output_sha256s: the client's texts, to be held against texts.json" in missing


def test_an_extract_is_read_and_said_to_be_one(tmp_path: Path) -> None:
    row = {"prompt_id": "sort", "completion_tokens": 120, "chunk_offsets_s": [0.5, 9.5, 9.6, 9.7]}
    flat = {"prompt_id": "join", "token_id_offsets_s": [0.5] * 100}
    timed = {"prompt_id": "long", "token_id_offsets_s": [0.01 * place for place in range(100)]}
    summary = {"tok_s_1_100_after_ttft": {"count": 13, "median": 100}}
    extract = json.dumps({"rows": [row, flat, timed, 3], "summary": summary}).encode()
    start = StartFolder(files={"bench.json": None, "bench.json.extract.json": extract})
    view = inspect_folder(start.write(tmp_path))
    assert any("only an extract" in one for one in view.missing)
    assert [one.what for one in view.findings if "stood still" in one.what] == [
        "sort stood still for 9000 ms after 1 chunks, once"
    ]
    assert [check for check in view.checks if "computed again" in check.what] == []


def test_a_log_of_nothing_says_nothing(tmp_path: Path) -> None:
    view = viewed(tmp_path, put("server.log", b"nothing\n"))
    assert ("version that the server prints", "none") in view.facts
    assert view.topology == ()
    assert "lines on graphs by rank: the log holds none" in view.missing
    assert [one for one in view.findings if one.where == "server.log"] == []
    assert "kv_capacity_tokens" not in {one.name for one in view.metrics}


def test_shared_memory_that_is_left_is_a_finding(tmp_path: Path) -> None:
    view = viewed(tmp_path, put("server.log", LOG + b"there appear to be 1 leaked shared_memory objects\n"))
    assert [one.what for one in view.findings if "shared memory was left" in one.what] != []


def test_a_start_that_says_little_of_itself_leaves_much_missing(tmp_path: Path) -> None:
    idle = ("pre-idle.json", "post-idle.json", "idle-interval/prestart-00.json", "idle-interval/summary.txt")
    others = ("identity.txt", "status.txt", "cleanup-status.txt", "service-environment.txt")
    root = StartFolder(files=dict.fromkeys((*idle, *others))).write(tmp_path)
    (tmp_path / "a-start.sha256").unlink()
    view = inspect_folder(root)
    for told in (*others, "pre-idle.json", "idle-interval/summary.txt", "the length of a draft", "a-start.sha256"):
        assert [one for one in view.missing if one.startswith(told)] != []
    assert "the topology that the identity expects" in view.missing


def test_files_that_the_list_does_not_hold_and_files_that_are_gone_are_told(tmp_path: Path) -> None:
    root = StartFolder().write(tmp_path)
    (root / "status.txt").rename(root / "new.txt")
    view = inspect_folder(root)
    assert any(one.startswith("1 of 13 files that a-start.sha256 lists: status.txt") for one in view.missing)
    assert [one.what for one in view.findings if one.where == "a-start.sha256"] == ["does not list new.txt"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    root = StartFolder().write(tmp_path)
    (root / "status.txt").unlink()
    (root / "status.txt").symlink_to(root / "identity.txt")
    assert [one.what for one in inspect_folder(root).findings if one.where == "status.txt"] != []


def test_a_log_that_is_a_link_proves_nothing(tmp_path: Path) -> None:
    root = StartFolder().write(tmp_path)
    clean = tmp_path / "clean.log"
    clean.write_bytes(LOG)
    (root / "server.log").unlink()
    (root / "server.log").symlink_to(clean)
    view = inspect_folder(root)
    told = [one.what for one in view.findings if one.where == "server.log"]
    assert "cannot be read: expected a regular file, got a link or another kind" in told
    assert "lines of an exception, an error or a fallback" not in [check.what for check in view.checks]


def test_a_pipe_in_a_files_place_is_told_and_not_waited_for(tmp_path: Path) -> None:
    root = StartFolder().write(tmp_path)
    (root / "status.txt").unlink()
    os.mkfifo(root / "status.txt")
    assert [one.what for one in inspect_folder(root).findings if one.where == "status.txt"] != []


def test_half_a_round_is_shown_and_no_crash(tmp_path: Path) -> None:
    root = StartFolder().write(tmp_path)
    after = root / "metrics-after-suite.prom"
    drafts = re.compile(rb"(spec_decode_num_drafts_total\S*) \S+")
    after.write_bytes(drafts.sub(rb"\1 0.5", after.read_bytes()))
    assert any("300 drafted in 0.5 cycles" in line for line in view_lines(inspect_folder(root)))


def test_a_status_without_a_status_is_no_check(tmp_path: Path) -> None:
    view = viewed(tmp_path, put("status.txt", b"all well\n"))
    assert "status of the start" not in [check.what for check in view.checks]


COMPARED: list[object] = [
    [3],
    [{"prompt_tokens": 1}],
    [{"prompt_tokens": 1, "completion_tokens": "1"}],
]


@pytest.mark.parametrize("rows", COMPARED)
def test_rows_of_another_form_are_a_finding(rows: object, tmp_path: Path) -> None:
    document = json.dumps({"candidates": [{"comparison": {"rows": rows}}]}).encode()
    view = viewed(tmp_path, put("exactness-vs-q1.json", document))
    assert [one.where for one in view.findings if one.where == "exactness-vs-q1.json"] == ["exactness-vs-q1.json"]


def test_a_comparator_that_leaves_boundaries_out_is_told(tmp_path: Path) -> None:
    row = {"prompt_tokens": 60, "completion_tokens": 300, "exact": True, "token_ids_equal": True, "cached_tokens": 0}
    document = json.dumps({"candidates": [{"comparison": {"rows": [row], "exact_count": 1}}]}).encode()
    view = viewed(tmp_path, put("exactness-vs-q1.json", document))
    assert {"long_then_next: the comparator does not say", "rollover: the comparator does not say"} <= {*view.missing}


def test_a_server_that_does_not_count_its_time_has_no_cycle(tmp_path: Path) -> None:
    view = viewed(tmp_path, lambda start: start.counters.pop("decode_s"))
    assert "cycle_ms" not in {one.name for one in view.metrics}


def test_a_start_without_speculation_says_so(tmp_path: Path) -> None:
    view = viewed(tmp_path, lambda start: [start.counters.pop(name) for name in DRAFTS])
    assert ("speculation", "no round was counted") in view.facts


DRAFTS = ("drafts", "draft_tokens", "accepted_tokens")


def test_a_folder_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="a folder of evidence"):
        inspect_folder(tmp_path / "nowhere")


def test_a_folder_that_no_start_left_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"x")
    with pytest.raises(NotFound, match="got 1 files, none of which is named as a file of a start"):
        inspect_folder(tmp_path)
    with pytest.raises(NotFound, match="got a file; name the folder"):
        inspect_folder(tmp_path / "notes.txt")


def test_a_tree_of_very_many_files_is_refused(tmp_path: Path) -> None:
    root = StartFolder().write(tmp_path)
    for number in range(MOST_FILES):
        (root / f"{number}").touch()
    with pytest.raises(NotFound, match="got more than 10000 files"):
        inspect_folder(root)


def test_a_run_of_labctls_own_is_not_taken_for_another_labs_evidence(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.seal(tmp_path)
    with pytest.raises(NotFound, match="a run of labctl's own; run `labctl runs show"):
        inspect_folder(builder.root)


def test_the_terminal_says_first_that_it_is_no_sealed_run_and_writes_nothing(tmp_path: Path) -> None:
    root = StartFolder().write(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    words = [sys.executable, "-m", "labctl", "inspect", str(root)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={}, cwd=tmp_path)
    assert "not a sealed run" in done.stdout.splitlines()[0]
    assert "150 accepted of 300 drafted in 150 cycles: 1.0000 accepted, 2.0000 emitted" in done.stdout
    assert done.stdout.splitlines() == [*view_lines(inspect_folder(root))]
    machine = subprocess.run([*words, "--json"], capture_output=True, text=True, check=True, env={}, cwd=tmp_path)
    assert EvidenceView.model_validate_json(machine.stdout) == inspect_folder(root)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
