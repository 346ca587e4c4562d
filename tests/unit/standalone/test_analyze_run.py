"""The analyzer that shares no code: it says what labctl says of every spoiled run, and needs nothing but Python."""

import ast
import hashlib
import json
import os
import py_compile
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labctl.agreement import REQUIRED, disagreements
from labctl.frozen import canonical_json
from labctl.packet.tool import STANDALONE_FILE, standalone_files, standalone_identity
from labctl.prereg.model import Api
from labctl.records.run import PhaseAnswer
from labctl.records.verdict import VerdictKind
from labctl.standalone import analyze_run as standalone
from labctl.standalone.sealed_files import Broken
from tests.fakes.run_builder import RunBuilder, json_edit
from tests.fakes.two_verdicts import both

Spoil = Callable[[RunBuilder], object]


def put(leg: str, **counters: object) -> Spoil:
    return lambda builder: builder.leg(leg).after.update(counters)  # type: ignore[arg-type] # spoiled on purpose


def row(leg: str, number: int, **changes: object) -> Spoil:
    def spoil(builder: RunBuilder) -> None:
        for name, value in changes.items():
            setattr(builder.leg(leg).rows[number], name, value)

    return spoil


def token(leg: str, number: int) -> Spoil:
    return lambda builder: builder.leg(leg).rows[number].ids.__setitem__(40, 499)


def log(leg: str, line: bytes) -> Spoil:
    return lambda builder: setattr(builder.leg(leg), "log", builder.leg(leg).log + line)


def record(name: str, **changes: object) -> Spoil:
    return lambda builder: builder.edits.__setitem__(name, json_edit(lambda document: document.update(changes)))


def body(edit: Callable[[bytes], bytes]) -> Spoil:
    return row("B2", 1, edit_body=edit)


def response(edit: Callable[[bytes], bytes]) -> Spoil:
    return row("B2", 1, edit_response=edit)


SPOILS: list[Spoil] = [
    lambda _: None,
    token("B2", 1),
    token("A1", 0),
    row("B2", 1, gap_ns=2_100_000),
    row("B2", 1, clock_step_ns=2_000_000),
    row("A2", 0, suspended_ns=5_000_000),
    row("B2", 0, cached_tokens=3),
    row("B2", 0, cached_tokens=None),
    row("B1", 0, merge_reads=True),
    row("B2", 0, has_kernel_stamps=False),
    row("B2", 1, finish=None),
    row("B2", 1, model="another"),
    row("B2", 1, ended="timeout"),
    put("B2", generation_tokens=203),
    put("B2", draft_tokens=401),
    put("B2", accepted_tokens=0, accepted_per_position=[0, 0, 0, 0]),
    put("B2", accepted_per_position=[40, 60, 0, 0]),
    put("B2", drafts=None, draft_tokens=None, accepted_tokens=None, accepted_per_position=None),
    put("A2", drafts=3, draft_tokens=12, accepted_tokens=3, accepted_per_position=[3]),
    put("B2", requests_succeeded=3),
    put("B2", prefix_cache_hits=4),
    log("B2", b"kernel 16 not compiled\r\n"),
    log("A1", b"Unknown vLLM environment variable detected: X\n"),
    lambda builder: setattr(builder.leg("B2"), "observed_argv", lambda argv: (*argv, "--fast")),
    lambda builder: setattr(builder.leg("B2"), "observed_environment", lambda found: found | {"LD_PRELOAD": "x"}),
    lambda builder: setattr(builder.leg("B2"), "maps", b"/usr/lib/libc.so.6\t1 1\n/other/libm.so.6\t1 2\n"),
    record("legs/03-B2/postflight.json", processes_left=[60]),
    record("legs/03-B2/process.json", listeners_after=[]),
    record("legs/03-B2/process.json", roots_after=[11]),
    body(lambda data: data.replace(b"\n\n", b"\r\n\r\n")),
    body(lambda data: data.replace(b"\n\n", b"\r\r").replace(b"data: ", b"data:")),
    body(lambda data: b"\xef\xbb\xbf: comment\n\n" + data),
    body(lambda data: data.replace(b"data: [DONE]", b"event: error\ndata: [DONE]")),
    body(lambda data: data.replace(b"data: [DONE]\n\n", b"data: [DONE]\n")),
    body(lambda data: data.replace(b"data: [DONE]\n\n", b"")),
    body(lambda data: data + b'data: {"error": {"message": "x"}}\n\n'),
    body(lambda data: data.replace(b'"index": 0', b'"index": 1')),
    body(lambda data: data.replace(b"completion_tokens", b"completed_tokens")),
    body(lambda data: data.replace(b'"created": 1', b'"created": NaN')),
    response(lambda data: data.replace(b"200 OK", b"503 Busy")),
    response(lambda data: data.replace(b"text/event-stream", b"application/json")),
    response(lambda data: data[:-5]),
    response(lambda data: data + b"x"),
    response(lambda data: data.replace(b"transfer-encoding: chunked", b"content-length: 9")),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SPOILS)))
def test_both_analyzers_say_the_same_of_a_spoiled_run(number: int, tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    SPOILS[number](builder)
    one, other = both(builder, tmp_path)
    outcomes = [[(gate.id, gate.result) for gate in verdict.gates] for verdict in (one, other)]
    assert outcomes[0] == outcomes[1]
    if one.verdict is not VerdictKind.INVALID:
        assert disagreements(one, other) == ()


@pytest.mark.parametrize("campaign_class", ["record", "calibration", "comparison", "exploratory"])
@pytest.mark.parametrize("kind", ["real", "rehearsal"])
def test_every_class_gets_the_same_verdict_from_both(campaign_class: str, kind: str, tmp_path: Path) -> None:
    for name, spoil in (("sound", SPOILS[0]), ("inexact", SPOILS[1]), ("slow", SPOILS[3])):
        builder = RunBuilder(stops=False, packet={"preregistration": {"class": campaign_class}, "kind": kind})
        spoil(builder)
        assert disagreements(*both(builder, tmp_path / name)) == ()


@pytest.mark.parametrize("api", list(Api))
def test_a_sound_run_agrees_in_every_figure_that_decides(api: Api, tmp_path: Path) -> None:
    one, other = both(RunBuilder(api=api), tmp_path)
    assert one.verdict is other.verdict is VerdictKind.EXPLORATORY_PASS
    assert disagreements(one, other) == ()
    assert {figure.name for gate in other.gates for figure in gate.figures} >= REQUIRED - {"practical_floor"}
    assert [line.token_ids_sha256 for line in one.rows] == [line.token_ids_sha256 for line in other.rows]


def test_the_exact_sign_test_is_the_binomial_tail(tmp_path: Path) -> None:
    _, other = both(RunBuilder(stops=False, prompts=3), tmp_path)
    tails = [one.value for gate in other.gates for one in gate.figures if one.name == "sign_test_p"]
    assert tails == ["1/8", "1/8"]


def test_the_phase_is_answered_alike(tmp_path: Path) -> None:
    builder = RunBuilder(legs_written=2)
    builder.leg("B1").log += b"not compiled\n"
    builder.write(tmp_path)
    told = PhaseAnswer.from_json(canonical_json(standalone.judge_phase(builder.root)), "standalone")
    labctl = PhaseAnswer.from_json((builder.root / "data/phase1/labctl.json").read_bytes(), "labctl")
    assert (told.may_continue, told.legs) == (labctl.may_continue, labctl.legs) == (False, labctl.legs)


def test_it_runs_alone_from_the_root_folder_on_a_copy(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.seal(tmp_path / "here")
    copy = tmp_path / "there" / builder.root.name
    shutil.copytree(builder.root, copy)
    folder = tmp_path / "analyzers"
    file = copy_analyzer(folder)
    answer = subprocess.run(
        [sys.executable, "-I", "-P", "-S", str(file), str(copy)], capture_output=True, check=True, env={}, cwd="/"
    )
    assert json.loads(answer.stdout) == standalone.judge_run(builder.root)
    assert answer.stderr == b""
    assert {path.name for path in folder.iterdir()} == {path.name for path in standalone_files()}


def copy_analyzer(folder: Path) -> Path:
    folder.mkdir()
    for file in standalone_files():
        shutil.copyfile(file, folder / file.name)
    return folder / STANDALONE_FILE.name


def test_a_changed_or_added_part_is_another_analyzer(tmp_path: Path) -> None:
    file = copy_analyzer(tmp_path / "analyzers")
    said = [asked_for_identity(file)]
    (file.parent / "added.py").write_bytes(b"")
    said.append(asked_for_identity(file))
    (file.parent / "added.py").unlink()
    part = file.parent / "wire_reading.py"
    part.write_bytes(part.read_bytes() + b"\n")
    said.append(asked_for_identity(file))
    assert said[0] == standalone_identity().model_dump(mode="json")
    assert len({one["sha256"] for one in said}) == 3


def test_a_part_is_looked_for_in_its_own_folder_and_compiled_code_beside_it_is_not_run(tmp_path: Path) -> None:
    file = copy_analyzer(tmp_path / "analyzers")
    part = file.parent / "wire_reading.py"
    source, state = part.read_bytes(), part.stat()
    part.write_bytes(b"raise SystemExit(9)".ljust(len(source)))
    py_compile.compile(str(part), doraise=True)
    part.write_bytes(source)
    os.utime(part, ns=(state.st_atime_ns, state.st_mtime_ns))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "wire_reading.py").write_text("raise SystemExit(9)")
    environment = {"PYTHONPATH": str(elsewhere)}
    answer = subprocess.run(
        [sys.executable, "-S", str(file), "--identity"], capture_output=True, check=True, env=environment, cwd=elsewhere
    )
    assert json.loads(answer.stdout) == standalone_identity().model_dump(mode="json")


def asked_for_identity(file: Path) -> dict[str, str]:
    answer = subprocess.run(
        [sys.executable, "-I", "-S", str(file), "--identity"], capture_output=True, check=True, env={}
    )
    return dict(json.loads(answer.stdout))


@pytest.mark.parametrize("name", ["data/legs/02-B1/wire/01.bin", "data/outcome.json", "manifest-sha256.txt"])
def test_one_changed_bit_is_named_and_judged_by_nobody(name: str, tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.seal(tmp_path)
    path = builder.root / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(bytes(data))
    with pytest.raises(Broken) as caught:
        standalone.judge_run(builder.root)
    assert any(name in str(problem) for problem in caught.value.args)


def test_a_file_that_nobody_sealed_and_one_that_is_gone_are_refused(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.seal(tmp_path)
    (builder.root / "data").chmod(0o700)
    (builder.root / "data/extra.txt").write_bytes(b"x")
    with pytest.raises(Broken, match=r"extra\.txt"):
        standalone.judge_run(builder.root)


def test_its_identity_is_the_digest_of_its_own_bytes() -> None:
    assert asked_for_identity(STANDALONE_FILE) == standalone_identity().model_dump(mode="json")


def test_whoever_has_sha256sum_can_tell_its_digest() -> None:
    lines = subprocess.run(
        ["sha256sum", *(file.name for file in standalone_files())],
        capture_output=True,
        check=True,
        cwd=STANDALONE_FILE.parent,
    ).stdout
    assert hashlib.sha256(lines).hexdigest() == standalone_identity().sha256


@pytest.mark.parametrize("file", standalone_files(), ids=lambda file: file.name)
def test_it_imports_the_standard_library_and_its_own_parts_and_nothing_else(file: Path) -> None:
    tree = ast.parse(file.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    parts = {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1}
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)
    assert parts - {"None"} <= {part.stem for part in standalone_files()}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level > 1]
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not calls & {"__import__", "exec", "eval", "importlib.import_module"}


def test_four_starts_of_thirteen_times_512_tokens_take_less_than_five_seconds(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False, prompts=13, tokens=512)
    builder.seal(tmp_path)
    started_s = time.perf_counter()
    answer = subprocess.run(
        [sys.executable, "-I", "-S", str(STANDALONE_FILE), str(builder.root)], capture_output=True, check=True, env={}
    )
    assert time.perf_counter() - started_s < 5
    assert json.loads(answer.stdout)["verdict"] == "exploratory_pass"
