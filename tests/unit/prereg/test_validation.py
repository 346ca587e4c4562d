"""Every fault at once: what is plain is repaired in a copy, so that the faults behind it are seen."""

from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import InvalidPreregistration
from labctl.prereg.load import load_preregistration, try_preregistration

RECORD = (Path(__file__).parents[2] / "fixtures" / "prereg" / "good" / "record.yaml").read_text()


def write(folder: Path, *changes: tuple[str, str]) -> Path:
    text = RECORD
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = folder / "campaign.yaml"
    path.write_text(text)
    return path


def codes_and_lines(path: Path) -> list[tuple[Code, int]]:
    problems = try_preregistration(path).problems
    return [(problem.code, int(problem.where.rsplit(":", 2)[1])) for problem in problems]


def test_five_faults_of_five_kinds_are_five_complaints_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        ("title: Prompt-lookup speculation", "titel: Prompt-lookup speculation"),
        ("question: Does it pay?", "question: 1e3"),
        ("class: record", "class: recrod"),
        ("labctl-{nonce}", "labctl-{nonse}"),
        ("[A1, B1, B2, A2]", "[A1, B1, B1, A2]"),
    )
    assert codes_and_lines(path) == [
        (Code.UNKNOWN_KEY, 4),
        (Code.AMBIGUOUS_SCALAR, 6),
        (Code.WRONG_VALUE, 8),
        (Code.UNKNOWN_PLACEHOLDER, 19),
        (Code.RULE, 28),
    ]
    with pytest.raises(InvalidPreregistration) as caught:
        load_preregistration(path)
    assert len(caught.value.problems) == 5


def test_what_stands_below_a_misspelt_key_is_checked_too_at_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, ("decision:\n", "desicion:\n"), ("headline: decode", "headlin: decode"), ("order:", "ordr:"))
    assert codes_and_lines(path) == [(Code.UNKNOWN_KEY, 28), (Code.UNKNOWN_KEY, 45), (Code.UNKNOWN_KEY, 46)]


def test_a_stray_key_does_not_hide_a_rule(tmp_path: Path) -> None:
    path = write(tmp_path, ("  ready:", "  zzz: 1\n  ready:"), ("required: 2", "required: 1"))
    assert codes_and_lines(path) == [(Code.UNKNOWN_KEY, 21), (Code.RULE, 52)]


def test_a_fault_of_form_that_cannot_be_guessed_ends_the_search(tmp_path: Path) -> None:
    path = write(tmp_path, ("seed: 1,", "seed: one,"), ("required: 2", "required: 1"))
    assert codes_and_lines(path) == [(Code.WRONG_TYPE, 27)]


def test_faults_of_form_are_reported_together(tmp_path: Path) -> None:
    path = write(tmp_path, ("seed: 1,", "seed: one,"), ("temperature: 0", "temperature: 2"), ("count: 1", "count: 0"))
    assert codes_and_lines(path) == [(Code.WRONG_VALUE, 27), (Code.WRONG_TYPE, 27), (Code.WRONG_VALUE, 37)]


def test_a_value_that_is_only_a_guess_draws_no_second_complaint(tmp_path: Path) -> None:
    path = write(tmp_path, ("seed: 1,", "seed: 0x1,"))
    assert codes_and_lines(path) == [(Code.AMBIGUOUS_SCALAR, 27)]


def test_a_repaired_file_is_still_refused(tmp_path: Path) -> None:
    attempt = try_preregistration(write(tmp_path, ("title:", "titel:")))
    assert attempt.loaded is not None
    with pytest.raises(InvalidPreregistration):
        attempt.required()


@pytest.mark.parametrize("text", ["5\n", "[a]\n", "text\n", "null\n"])
def test_a_document_that_is_no_mapping_is_one_complaint(tmp_path: Path, text: str) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    assert codes_and_lines(path) == [(Code.WRONG_TYPE, 1)]


def test_quoting_faults_hide_nothing(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        ("labctl: 1", 'labctl: "1"'),
        ("title: Prompt-lookup speculation", "title: 1.5"),
        ("max_tokens: 128", 'max_tokens: "128"'),
        ("stop_after_first_pair: true", 'stop_after_first_pair: "yes"'),
        ("[A1, B1, B2, A2]", "[A1, B1, B1, A2]"),
        ('alpha: "0.05"', "alpha: 1.5"),
    )
    assert codes_and_lines(path) == [
        (Code.WRONG_VALUE, 1),
        (Code.WRONG_TYPE, 4),
        (Code.WRONG_TYPE, 27),
        (Code.RULE, 28),
        (Code.WRONG_TYPE, 28),
        (Code.WRONG_TYPE, 50),
        (Code.RULE, 50),
    ]
    assert not any("more checks follow" in problem.do for problem in try_preregistration(path).problems)


def test_json_without_quotes_is_told_to_be_quoted_and_hides_nothing(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        ('\'{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}\'', '{"method": "ngram", "n": 4}'),
        ("required: 2", "required: 1"),
    )
    first, second = try_preregistration(path).problems
    assert (first.expected, first.got) == ("text or true", "a mapping")
    assert first.do == "write the JSON as one quoted string"
    assert first.where.endswith("campaign.yaml:25:14")
    assert second.code is Code.RULE


def test_false_for_an_absent_option_is_told_to_be_null(tmp_path: Path) -> None:
    (problem,) = try_preregistration(write(tmp_path, ("control: null", "control: false"))).problems
    assert problem.do == 'write null for an absent option, or quote it as "false"'


@pytest.mark.parametrize("word", ["yes", "off", "True"])
def test_an_ambiguous_truth_hides_no_rule(tmp_path: Path, word: str) -> None:
    path = write(
        tmp_path, ("stop_after_first_pair: true", f"stop_after_first_pair: {word}"), ("required: 2", "required: 1")
    )
    assert codes_and_lines(path) == [(Code.AMBIGUOUS_SCALAR, 28), (Code.RULE, 51)]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("seed: 1,", "seed: one,"),
        ("seed: 1,", 'seed: "01",'),
        ("seed: 1,", "seed: 0x1,"),
        ("suite: suites/three.yaml, ", ""),
        ("title: Prompt-lookup speculation", "title: [a]"),
        ("title: Prompt-lookup speculation", "title: b: c"),
    ],
)
def test_a_fault_that_cannot_be_guessed_says_that_more_follows(tmp_path: Path, was: str, now: str) -> None:
    *others, last = try_preregistration(write(tmp_path, (was, now), ("count: 1", "count: 0"))).problems
    assert last.do.endswith("; more checks follow once this much is right")
    assert not any("more checks follow" in problem.do for problem in others)


def test_text_that_was_only_unquoted_is_checked_as_text(tmp_path: Path) -> None:
    path = write(tmp_path, ('"ef334233deabeaeedb607056a2db1c90edb3887c"', "1234567"))
    assert codes_and_lines(path) == [(Code.WRONG_TYPE, 12), (Code.WRONG_VALUE, 12)]


def test_an_engine_that_is_not_known_is_named_with_the_nearest_known_one(tmp_path: Path) -> None:
    (problem,) = try_preregistration(write(tmp_path, ("engine: vllm", "engine: vlm"))).problems
    assert (problem.code, problem.expected, problem.do) == (
        Code.WRONG_VALUE,
        "one of reference, vllm",
        "did you mean `vllm`?",
    )
    assert problem.where.endswith("campaign.yaml:17:11")


@pytest.mark.parametrize(("kind", "got"), [("host", "a host profile"), ("suite", "a suite")])
def test_a_file_of_another_kind_is_one_complaint(tmp_path: Path, kind: str, got: str) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(f"labctl: 1\nkind: {kind}\nzzz: 2\n")
    (problem,) = try_preregistration(path).problems
    assert problem.where.endswith("other.yaml:2:7")
    assert problem.got.startswith(got)
    assert problem.expected.startswith("a campaign")
