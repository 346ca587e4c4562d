"""The analyzer as a process, and its figures against a script that shares no line with it."""

import json
import re
import statistics
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from labctl.analyze.sealed_run import analyze_run
from labctl.packet.tool import ANALYZER_PARTS, analyzer_identity
from labctl.records.run import PhaseAnswer
from labctl.records.verdict import Verdict, VerdictKind
from tests.fakes.run_builder import RunBuilder

ACTING = ("campaign", "leg", "servers", "measure", "marker", "host", "ledger", "pipeline", "cli", "judges", "submit")
HEAVY = ("httpx", "httpcore", "typer", "scipy", "numpy", "matplotlib", "jinja2", "torch")


def run_analyzer(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-I", "-P", "-m", "labctl.analyze", *arguments], capture_output=True, check=False, env={}
    )


def row_rate(leg: Path, stem: str) -> Fraction:
    """The conventional rate of one row, from its two files and nothing else."""
    stamps = [json.loads(line) for line in (leg / "wire" / f"{stem}.reads.jsonl").read_text().splitlines()]
    ends, at = [], 0
    for line in stamps:
        if line["event"] == "read":
            at += line["length"]
            ends.append((at, line["kernel_ns"]))
    data = (leg / "wire" / f"{stem}.bin").read_bytes()
    arrivals: list[int] = []
    for found in re.finditer(rb"data: (\{.*?\})\n\n", data, re.DOTALL):
        choices = json.loads(found[1])["choices"]
        ids = choices[0].get("token_ids", []) if choices else []
        arrivals += [next(stamp for end, stamp in ends if end >= found.end())] * len(ids)
    return Fraction(99 * 10**9, arrivals[99] - arrivals[0])


def test_every_row_rate_and_headline_follows_from_the_wire_bytes_alone(tmp_path: Path) -> None:
    builder = RunBuilder(prompts=3)
    verdict = analyze_run(builder.seal(tmp_path), analyzer_identity())
    rates: dict[tuple[str, int], Fraction] = {}
    headlines: dict[str, Fraction] = {}
    for folder in sorted((builder.root / "data/legs").iterdir()):
        stems = sorted(path.stem for path in (folder / "wire").glob("*.bin"))
        rows = [row_rate(folder, stem) for stem in stems]
        name = folder.name[3:]
        rates |= {(name, int(stem)): rate for stem, rate in zip(stems, rows, strict=True)}
        headlines[name] = statistics.median(rows)
    metric = "decode_rate_conventional_1_100"
    told = {(row.leg, row.row): _named(row.figures, metric) for row in verdict.rows}
    assert told == rates
    assert len(told) == 12
    assert {start.leg: _named(start.figures, metric) for start in verdict.starts} == headlines
    reported = verdict.reported_value
    assert reported is not None
    assert Fraction(reported.value) == min(headlines["B1"], headlines["B2"])


def _named(figures: tuple[object, ...], name: str) -> Fraction:
    return next(Fraction(one.value) for one in figures if one.name == name)  # type: ignore[attr-defined] # a Figure


def test_the_process_prints_the_verdict_that_the_function_gives(tmp_path: Path) -> None:
    builder = RunBuilder()
    run = builder.seal(tmp_path)
    answer = run_analyzer(str(builder.root))
    assert (answer.returncode, answer.stderr) == (0, b"")
    assert answer.stdout == analyze_run(run, analyzer_identity()).canonical()
    assert Verdict.from_json(answer.stdout, "verdict").verdict is VerdictKind.EXPLORATORY_PASS


def test_a_negative_verdict_is_an_answer_all_the_same(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.leg("B2").rows[0].ids[4] = 499
    builder.seal(tmp_path)
    answer = run_analyzer(str(builder.root))
    assert answer.returncode == 0
    assert Verdict.from_json(answer.stdout, "verdict").verdict is VerdictKind.DIAGNOSTIC_NOT_EXACT


def test_the_process_answers_the_phase_stop_from_an_open_run(tmp_path: Path) -> None:
    builder = RunBuilder(legs_written=2)
    builder.write(tmp_path)
    (builder.root / "data/outcome.json").unlink()
    journal = builder.root / "data/journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:5]))
    answer = run_analyzer("--phase", str(builder.root))
    assert answer.returncode == 0
    assert PhaseAnswer.from_json(answer.stdout, "answer").may_continue


def test_one_changed_bit_is_no_verdict_but_exit_5_and_the_name_of_the_file(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.seal(tmp_path)
    path = builder.root / "data/legs/02-B1/wire/01.bin"
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(bytes(data))
    answer = run_analyzer(str(builder.root))
    assert (answer.returncode, answer.stdout) == (5, b"")
    (line,) = answer.stderr.decode().splitlines()
    assert "data/legs/02-B1/wire/01.bin" in line
    assert "DIGEST_MISMATCH" in line


@pytest.mark.parametrize("arguments", [(), ("--fast", "x"), ("a", "b"), ("--phase",)])
def test_another_command_line_is_usage(arguments: tuple[str, ...]) -> None:
    answer = run_analyzer(*arguments)
    assert (answer.returncode, answer.stdout) == (2, b"")


def test_the_process_loads_nothing_of_the_acting_side_and_only_what_its_digest_covers(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.seal(tmp_path)
    script = (
        "import sys, json\nfrom labctl.analyze.__main__ import main\n"
        f"main([{str(builder.root)!r}])\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    answer = subprocess.run([sys.executable, "-I", "-P", "-c", script], capture_output=True, check=True, env={})
    loaded = json.loads(answer.stderr)
    assert "labctl.analyze.sealed_run" in loaded
    for name in (*(f"labctl.{part}" for part in ACTING), *HEAVY):
        assert name not in loaded
    covered = {part.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for part in ANALYZER_PARTS}
    for name in loaded:
        if name.startswith("labctl."):
            inside = name.removeprefix("labctl.")
            assert any(inside == part or inside.startswith(f"{part}.") for part in covered), name


def test_two_judgements_of_one_run_are_equal_to_the_byte(tmp_path: Path) -> None:
    run = RunBuilder(stops=False).seal(tmp_path)
    once, twice = (analyze_run(run, analyzer_identity()).canonical() for _ in range(2))
    assert once == twice
