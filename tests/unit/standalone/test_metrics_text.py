"""Both analyzers read the same samples from Prometheus text, or both refuse it."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl.analyze.counters import parse_counters
from labctl.engines.reference import VOCABULARY
from labctl.errors import MalformedRecord
from labctl.standalone.run_reading import Counters, read_counters

NAMES = {field: name for field, name in VOCABULARY.counters.model_dump().items() if name}
DRAFTS = VOCABULARY.counters.drafts
HEAD = f"# HELP {DRAFTS} Rounds.\n# TYPE {DRAFTS} counter\n"
PARTS = [
    DRAFTS, DRAFTS.removesuffix("_total"), VOCABULARY.counters.requests_running, "x", "1x", "# HELP ", "# TYPE ", "# ",
    "#", "#\tHELP ", " counter", " gauge", " histogram", "{", "}", 'engine="0"', 'engine="1"', 'position="0"',
    'a="\\""', 'a="\\x"', '__a="1"', ",", '"', "\\", " ", "  ", "\t", "\r", "\n", "\n", "\n", " 1", " 2.5", " 1e3",
    " +7", " NaN", " 9007199254740993", " +Inf", " -1", " 1_0", " 1 1700000000000", " .5", " 1.", " 1.2.3", " \u0663",
    ' # {a="b"} 1', "\u00e9",
]  # fmt: skip


def outcomes(data: bytes) -> list[Counters | None]:
    found: list[Counters | None] = []
    try:
        found.append(parse_counters(data, VOCABULARY, "here").values)
    except MalformedRecord:
        found.append(None)
    try:
        found.append(read_counters(data, NAMES))
    except ValueError:
        found.append(None)
    return found


@given(st.lists(st.sampled_from(PARTS), max_size=14).map("".join))
@settings(max_examples=800)
def test_both_readers_take_the_same_lines(text: str) -> None:
    one, other = outcomes((HEAD + text).encode())
    assert one == other


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("", True),
        (f'{DRAFTS}{{engine="0",}} 3 1700000000000\r\n', True),
        (f"{DRAFTS} 9007199254740993\n", True),
        ("# EOF\n\n#\n", True),
        (f"{DRAFTS}\t3\n", False),
        (f" {DRAFTS} 3\n", False),
        (f"{DRAFTS} 3 x\n", False),
        (f"{DRAFTS} 1_0\n", False),
        (f"{DRAFTS} NaN\n", False),
        (f"{DRAFTS} -1\n", False),
        ("other NaN\n", True),
        (f'{DRAFTS}{{a="1",a="1"}} 3\n', False),
        (f'{DRAFTS}{{a="1"}} 3\n{DRAFTS}{{a="1"}} 3\n', False),
        ("BagIt-Version: 1.0\n", False),
        ("# TYPE other\n", False),
    ],
)
def test_a_line_that_is_no_sample_is_refused_by_both(text: str, is_read: bool) -> None:
    one, other = outcomes(text.encode())
    assert one == other
    assert (one is not None) is is_read


def test_a_counter_is_called_by_its_whole_name_by_both() -> None:
    short = DRAFTS.removesuffix("_total")
    one, other = outcomes(f"# TYPE {short} counter\n{short} 3\nother 1\n{short} 4\n".encode())
    assert one == other == {"drafts": {(): Fraction(3)}}
