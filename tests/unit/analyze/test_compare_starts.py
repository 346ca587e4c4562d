"""Two sealed starts are put side by side only where both were asked the same, and nobody takes that for a verdict."""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from labctl.analyze.compare_starts import compare_starts, open_sealed_start
from labctl.engines.vocabulary import EngineVocabulary
from labctl.errors import BrokenEvidence, NotFound, Refused
from labctl.frozen import canonical_json
from labctl.prereg.model import Api
from labctl.records.start_comparison import StartComparison
from labctl.report.start_comparison import comparison_lines
from labctl.seal.verify import open_sealed_run
from tests.fakes.run_builder import RunBuilder, json_edit


def sealed(folder: Path, **changes: object) -> RunBuilder:
    builder = RunBuilder(stops=False, **changes)  # type: ignore[arg-type] # any field
    builder.leg("B1").rows[1].ids[40] = 499
    builder.seal(folder)
    return builder


def compared(one: Path, other: Path, legs: tuple[str | None, str | None] = (None, "B1")) -> StartComparison:
    first, second = (
        open_sealed_start(open_sealed_run(root), leg) for root, leg in zip((one, other), legs, strict=True)
    )
    return compare_starts(first, second)


def gain_of_gaps() -> Fraction:
    """A1 brings a token an event, B1 two: token 100 comes with event 100 of the one, and with event 51 of the other."""
    one = sum((Fraction(1, gap_ns) for gap_ns in (1_000_010, 1_001_010)), Fraction(0))
    other = sum((Fraction(99, 50 * gap_ns) for gap_ns in (1_400_020, 1_401_020)), Fraction(0))
    return 100 * (other / one - 1)


def test_two_starts_of_two_runs_give_speeds_differences_and_doubts(tmp_path: Path) -> None:
    roots = sealed(tmp_path / "one").root, sealed(tmp_path / "other").root
    found = compared(*roots)
    values = {(one.name, one.where): one.value for one in found.figures}
    assert [start.leg for start in found.starts] == ["A1", "B1"]
    assert values["first_difference", "row 2"] == "40"
    assert values["differing_rows", "second vs first"] == "1"
    assert values["acceptance_rate", "second"] == "1/4"
    assert Fraction(values["decode_rate_conventional_1_100_gain", "second vs first"]) == gain_of_gaps()
    assert "nobody registered this comparison in advance" in found.doubts[0]
    assert any("not a language model" in line for line in comparison_lines(found))


def test_a_start_against_itself_differs_in_nothing(tmp_path: Path) -> None:
    root = sealed(tmp_path).root
    values = {one.name: one.value for one in compared(root, root, ("B1", "B1")).figures}
    assert (values["differing_rows"], values["wall_rate_gain"]) == ("0", "0")
    assert "first_difference" not in values


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"prompts": 3}, "prompts"), ({"tokens": 102}, "max_tokens"), ({"api": Api.CHAT}, "api")],
)
def test_starts_that_were_not_asked_the_same_are_refused(
    changes: dict[str, object], named: str, tmp_path: Path
) -> None:
    roots = sealed(tmp_path / "one").root, sealed(tmp_path / "other", **changes).root
    with pytest.raises(Refused) as refusal:
        compared(*roots)
    assert f"B1: {named}" in "\n".join(problem.where for problem in refusal.value.problems)
    assert refusal.value.exit_code == 3


def test_another_seed_is_another_request(tmp_path: Path) -> None:
    roots = sealed(tmp_path / "one").root, sealed(tmp_path / "other", packet=SEED).root
    with pytest.raises(Refused, match="seed: expected 1, got 2"):
        compared(*roots)


def test_the_same_text_behind_another_template_is_another_request(tmp_path: Path) -> None:
    other = RunBuilder(stops=False)
    for row in other.leg("A1").rows:
        row.prompt_ids = [*range(41), *row.prompt_ids]
    other.seal(tmp_path / "other")
    with pytest.raises(Refused, match=r"tokens of the prompt, row 1: expected 5 tokens, .* got 46 tokens, .*; 2 rows"):
        compared(sealed(tmp_path / "one").root, other.root, (None, None))


SEED: dict[str, object] = {"preregistration": {"workload": {"seed": 2}}}


def test_doubts_name_what_else_differs_and_rows_that_do_not_count(tmp_path: Path) -> None:
    other = RunBuilder(stops=False)
    said = other.vocabulary.model_dump(mode="json", by_alias=True) | {"is_stand_in": False}
    other.vocabulary = EngineVocabulary.from_json(canonical_json(said), "engine")
    other.leg("A1").rows[0].edit_body = lambda body: body.replace(b"prompt_token_ids", b"prompt_other_ids")
    other.leg("A1").rows[0].clock_step_ns = 5_000_000
    other.seal(tmp_path / "other")
    found = compared(sealed(tmp_path / "one").root, other.root, (None, None))
    assert "a server does not say which tokens it read, so the requests may differ in them" in found.doubts
    assert f"{found.starts[1].run}:A1: 1 rows do not count" in found.doubts
    assert sum("not a language model" in doubt for doubt in found.doubts) == 1
    assert "wall_rate_gain" not in {one.name for one in found.figures}


def test_a_start_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    root = sealed(tmp_path).root
    with pytest.raises(NotFound, match="one of A1, B1, B2, A2, got B9"):
        compared(root, root, ("A1", "B9"))


def test_a_run_whose_records_contradict_each_other_is_compared_with_nothing(tmp_path: Path) -> None:
    builder = RunBuilder(stops=False)
    builder.edits["legs/01-A1/exit.json"] = json_edit(lambda document: document.update(leg="B1"))
    builder.seal(tmp_path)
    with pytest.raises(BrokenEvidence):
        compared(builder.root, builder.root)


def test_the_command_takes_a_run_and_a_start_of_it(tmp_path: Path) -> None:
    root = sealed(tmp_path).root
    words = [sys.executable, "-m", "labctl", "runs", "compare", str(root), f"{root}:B1"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={}, cwd=tmp_path)
    assert done.stdout.splitlines() == [*comparison_lines(compared(root, root))]
    machine = subprocess.run([*words, "--json"], capture_output=True, text=True, check=True, env={}, cwd=tmp_path)
    assert json.loads(machine.stdout) == compared(root, root).model_dump(mode="json")
