"""A hundred machine-made changes of a sealed run, each caught or listed; `make faults` tries thousands."""

import random
from pathlib import Path

import pytest

from labctl.standalone import start_conflicts
from tests.fakes.run_builder import RunBuilder
from tests.tamper.bench import Bench, Level, try_mutations
from tests.tamper.mutations import KINDS, mutate
from tests.tamper.outside import outside_reason

MUTATIONS = 100


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(RunBuilder().seal(tmp_path / "sealed"), tmp_path / "bench")


def test_a_hundred_changes_are_all_caught_or_listed(bench: Bench) -> None:
    tally = try_mutations(bench, MUTATIONS, seed=1)
    assert tally.missed == []
    assert tally.alone == []
    assert tally.tried.total() == MUTATIONS
    assert sum(count for (_, level, _), count in tally.caught.items() if level is Level.RAW) == MUTATIONS
    resealed = sum(count for (_, level, _), count in tally.caught.items() if level is Level.MENDED)
    assert resealed > MUTATIONS // 2


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_change_is_refused_by_the_verifier(kind: str, bench: Bench) -> None:
    mutation = mutate(bench.files, random.Random(kind), kind)  # noqa: S311 (changes, not secrets)
    assert mutation.files != bench.files
    assert bench.verifier_says(mutation.files) is not None
    assert bench.verifier_says(bench.files) is None


def test_what_gates_relate_is_never_left_to_a_witness(bench: Bench) -> None:
    path = "data/legs/03-B2/metrics-after.prom"
    counter = b"vllm:generation_tokens_total{"
    lines = bench.files[path].splitlines(keepends=True)
    edited = b"".join(line.replace(b"} ", b"} 1") if line.startswith(counter) else line for line in lines)
    assert edited != bench.files[path]
    assert outside_reason(bench.files, bench.files | {path: edited}) is None
    wire = "data/legs/03-B2/wire/01.bin"
    shorter = bench.files | {wire: bench.files[wire].replace(b'"token_ids": [', b'"token_ids": [1', 1)}
    assert outside_reason(bench.files, shorter) is None


def test_a_row_that_was_hurried_is_answered_by_gates_although_no_byte_says_otherwise(bench: Bench) -> None:
    mutation = mutate(bench.files, random.Random(3), "hurry a row")  # noqa: S311 (changes, not secrets)
    after = bench.resealed(mutation.files, Level.MENDED)
    assert after is not None
    answer, difference = bench.checks_say(after)
    assert answer is not None
    assert difference is None


def test_a_change_that_one_analyzer_alone_believes_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "data/legs/03-B2/exit.json"
    edited = bench.files[path].replace(b'"cause":"completed"', b'"cause":"stream"')
    after = bench.resealed(bench.files | {path: edited}, Level.MENDED)
    assert after is not None
    assert bench.checks_say(after)[1] is None
    monkeypatch.setattr(start_conflicts, "_ending_contradictions", lambda *_: iter(()))
    assert "verdict" in str(bench.checks_say(after)[1])
