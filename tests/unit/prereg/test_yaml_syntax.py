"""What does not scan is told in words that say what to change, by each of the two parsers."""

import pytest
import yaml

from labctl.prereg import strict_yaml
from labctl.prereg.strict_yaml import read_yaml

PARSERS = [yaml.SafeLoader, *([yaml.CSafeLoader] if hasattr(yaml, "CSafeLoader") else [])]


@pytest.mark.parametrize("parser", PARSERS, ids=lambda loader: loader.__name__)
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a: [\n", "expected a value, got nothing"),
        (b"a: @b\n", "got a sign that no plain value starts with; put the value in quotes"),
        (b"a: b: c\n", "expected one `key: value`, got a second colon; quote the text that holds it"),
        (b'a: "x\nb: 2\n', "expected a closing quote, got the end of the file, in the part that begins in line 1"),
        (b"a:\n  b: 1\n c: 1\n", "indented like its neighbours, got something else, in the part that begins in line 1"),
        (b"a: 'x'y\n", "indented like its neighbours"),
        (b"a: {b: 1\nc: 2\n", "expected a comma or `}`"),
        (b"a: [1, 2\nb: 3\n", "expected a comma or `]`"),
        (b"a: 1\nabc\nb: 3\n", "expected `key: value`, got a line without a colon"),
        (b"a: - b\n", "expected `- item` in a line of its own"),
        (b'a: "\\q"\n', "use single quotes, or write the backslash twice"),
        (b"a: |x\n", "expected text that is YAML, got something else (the parser says: "),
    ],
)
def test_a_complaint_of_the_parser_is_told_in_words(
    data: bytes, words: str, parser: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strict_yaml, "_LOADER", parser)
    (problem,) = read_yaml(data, "f").problems
    assert words in str(problem)
