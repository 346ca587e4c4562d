"""The strict YAML reader, with each of the two parsers that PyYAML may bring."""

from collections.abc import Iterator

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given

from labctl.codes import Code
from labctl.prereg import strict_yaml
from labctl.prereg.strict_yaml import read_yaml

PARSERS = [yaml.SafeLoader, *([yaml.CSafeLoader] if hasattr(yaml, "CSafeLoader") else [])]


@pytest.fixture(params=PARSERS, ids=lambda loader: loader.__name__, autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(strict_yaml, "_LOADER", request.param)
    return iter(())


def codes(data: bytes) -> list[Code]:
    return [problem.code for problem in read_yaml(data, "f.yaml").problems]


def test_a_document_gives_its_tree_and_the_place_of_each_key_and_value() -> None:
    document = read_yaml(b'# first\na: 1\nb:\n  - x\n  - {c: "two"}\n', "f.yaml")
    assert document.problems == ()
    assert document.tree == {"a": 1, "b": ["x", {"c": "two"}]}
    assert document.places.of_key(("a",)) == "f.yaml:2:1"
    assert document.places.of_value(("a",)) == "f.yaml:2:4"
    assert document.places.of_value(("b", 1, "c")) == "f.yaml:5:9"
    assert document.places.of_key(("b", 1, "c")) == "f.yaml:5:6"
    assert document.places.of_value(("b", 1, "absent", "deeper")) == "f.yaml:5:5"
    assert document.places.of_key(("b", 0)) == "f.yaml:4:5"


def test_quoted_and_block_scalars_are_text_whatever_they_look_like() -> None:
    tree = read_yaml(b"a: \"1\"\nb: 'no'\nc: |\n  1.10\nd: >-\n  null\n  x\n", "f").tree
    assert tree == {"a": "1", "b": "no", "c": "1.10\n", "d": "null x"}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a: &x 1\n", Code.YAML_FEATURE),
        (b"a: *x\n", Code.YAML_FEATURE),
        (b"a: ! x\n", Code.YAML_FEATURE),
        (b"a: !!binary aGk=\n", Code.YAML_FEATURE),
        (b"a: !!python/name:os.system ''\n", Code.YAML_FEATURE),
        (b"%YAML 1.1\n---\na: 1\n", Code.YAML_FEATURE),
        (b"%TAG ! tag:x,2000:\n---\na: 1\n", Code.YAML_FEATURE),
        (b"a: 1\n---\nb: 2\n", Code.YAML_FEATURE),
        (b"? [a]\n: 1\n", Code.YAML_FEATURE),
        (b"<<: {a: 1}\n", Code.YAML_FEATURE),
        (b"a: 1\na: 2\n", Code.DUPLICATE_KEY),
        (b"{a: 1, 'a': 2}\n", Code.DUPLICATE_KEY),
        (b"1: a\n", Code.AMBIGUOUS_SCALAR),
        (b"? \n: 1\n", Code.AMBIGUOUS_SCALAR),
        (b"yes: a\n", Code.AMBIGUOUS_SCALAR),
        (b"h: 12e34567\n", Code.AMBIGUOUS_SCALAR),
        (b"a:\n", Code.AMBIGUOUS_SCALAR),
        (b"[" * 3000, Code.TOO_LARGE),
        (b"a: 9007199254740993000\n", Code.TOO_LARGE),
        (b"a: [" + b"1," * 20_000 + b"]\n", Code.TOO_LARGE),
        (b"#" * ((1 << 20) + 1), Code.TOO_LARGE),
        (b"", Code.YAML_SYNTAX),
        (b"# nothing\n", Code.YAML_SYNTAX),
        (b"a: [\n", Code.YAML_SYNTAX),
        (b"a: @b\n", Code.YAML_SYNTAX),
        (b"a: b: c\n", Code.YAML_SYNTAX),
        (b"\xff", Code.NOT_TEXT),
        (b"\xef\xbb\xbfa: 1\n", Code.NOT_TEXT),
        (b"a: 1\r\n", Code.NOT_TEXT),
        (b"a:\tx\n", Code.NOT_TEXT),
        (b'a: "\\u202e"\n', Code.NOT_TEXT),
        (b'"\\a": 1\n', Code.NOT_TEXT),
    ],
)
def test_each_fault_has_its_one_code(data: bytes, expected: Code) -> None:
    assert codes(data) == [expected]


def test_the_laughing_bomb_is_refused_before_it_is_built() -> None:
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x]\n"]
    lines += [b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 10)]
    document = read_yaml(b"".join(lines), "f")
    assert {problem.code for problem in document.problems} == {Code.YAML_FEATURE}
    assert [problem.where for problem in document.problems] == [f"f:{line}:5" for line in range(1, 11)]


@pytest.mark.parametrize(
    "data",
    [
        b"a: &x {b: 1}\nc: {<<: *x}\nd: *x\n",  # what stands for an anchor
        b"a: \x00\n",  # a value of which nothing is left
        b"a: N\x00O\n",  # a value that is another without it
        b"a: 0\x1b10\n",
    ],
)
def test_what_follows_from_a_fault_is_no_second_one(data: bytes) -> None:
    assert len(read_yaml(data, "f").problems) == 1


def test_a_character_that_is_taken_out_makes_only_its_own_line_a_guess() -> None:
    document = read_yaml(b"a: \x00\r\nb: NO\r\n", "f")
    assert document.faulty == {("a",), ("b",)}
    assert [problem.code for problem in document.problems] == [Code.NOT_TEXT, Code.NOT_TEXT, Code.AMBIGUOUS_SCALAR]


def test_sixteen_levels_are_read_and_seventeen_are_not() -> None:
    assert codes(b"[" * 16 + b"]" * 16) == []
    assert codes(b"[" * 17 + b"]" * 17) == [Code.TOO_LARGE]


def test_every_fault_of_a_file_is_reported_with_its_line() -> None:
    problems = read_yaml(b"a: NO\na: 2\nb: &x z\nc: 010\n", "f").problems
    assert [(problem.code, problem.where) for problem in problems] == [
        (Code.AMBIGUOUS_SCALAR, "f:1:4"),
        (Code.DUPLICATE_KEY, "f:2:1"),
        (Code.YAML_FEATURE, "f:3:4"),
        (Code.AMBIGUOUS_SCALAR, "f:4:4"),
    ]


def test_the_first_of_two_equal_keys_is_kept_and_marked_as_a_guess() -> None:
    document = read_yaml(b"a: {b: 1, b: 2}\n", "f")
    assert document.tree == {"a": {"b": 1}}
    assert document.faulty == {("a", "b")}


@pytest.mark.parametrize(("word", "advice"), [("Yes", "write true"), ("off", "write false"), ("~", "write null")])
def test_the_complaint_says_what_to_write_instead(word: str, advice: str) -> None:
    (problem,) = read_yaml(f"a: {word}\n".encode(), "f").problems
    assert advice in problem.do


@given(st.binary(max_size=80) | st.text(alphabet="ab:-?[]{}#&*!|>'\"%@`,\\ \n0.~", max_size=40).map(str.encode))
def test_any_bytes_give_a_tree_or_a_problem_and_no_other_error(data: bytes) -> None:
    document = read_yaml(data, "f")
    assert document.tree is not None or document.problems or data.strip() in {b"null", b"--- null"}


@pytest.mark.skipif(len(PARSERS) == 1, reason="PyYAML has one parser here")
@given(st.text(alphabet="ab:-[]{},'\"|>\n 01.~", max_size=40))
def test_both_parsers_read_every_accepted_document_alike(text: str) -> None:
    readings = []
    for loader in PARSERS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(strict_yaml, "_LOADER", loader)
            readings.append(read_yaml(text.encode(), "f"))
    assert bool(readings[0].problems) == bool(readings[1].problems)
    if not readings[0].problems:
        assert readings[0].tree == readings[1].tree
