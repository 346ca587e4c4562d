"""Which plain scalars have one meaning."""

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given

from labctl.prereg.scalars import Reading, read_plain

AMBIGUOUS = """
    True NO no off on y N yes Null ~ = << 1:30 12:30:00 190:20:30.15 010 0o17 0x1F 0b11 1_000 1,000 +1 -0 -0.0 1. .5
    1e3 1e-3 12e34567 1.10 1.0e+22 1e+22 .inf -.INF .nan 2026-11-29 2026-11-29T10:00:00Z 0.00001 1.50 00 -01
"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("0", 0),
        ("-7", -7),
        ("9" * 18, 10**18 - 1),
        ("1.5", 1.5),
        ("-0.25", -0.25),
        ("0.0", 0.0),
        ("127.0.0.1", "127.0.0.1"),
        ("-m", "-m"),
        ("--port", "--port"),
        ("A1", "A1"),
        ("3.14abc", "3.14abc"),
        ("suites/thirteen.yaml", "suites/thirteen.yaml"),
        ("nothing", "nothing"),
    ],
)
def test_clear_scalars_have_their_value(text: str, value: object) -> None:
    reading = read_plain(text)
    assert reading == value
    assert type(reading) is type(value)


@pytest.mark.parametrize(
    "text",
    [*AMBIGUOUS.split(), "", "2026-11-29 10:00:00", "ab" * 20, "0" * 64, "F" * 40],
)
def test_scalars_that_libraries_read_differently_are_refused(text: str) -> None:
    assert read_plain(text) is Reading.AMBIGUOUS


def test_a_number_beyond_eighteen_digits_is_too_large() -> None:
    assert read_plain("1" + "0" * 18) is Reading.TOO_LARGE
    assert read_plain("-" + "9" * 30) is Reading.TOO_LARGE


@given(st.text(alphabet="0123456789.-+_:eExXoOabcnNulytrsfT~", max_size=12))
def test_an_accepted_scalar_means_the_same_to_pyyaml(text: str) -> None:
    reading = read_plain(text)
    if isinstance(reading, Reading):
        return
    tag = yaml.SafeLoader("").resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call] # stub gap
    others = yaml.SafeLoader("").construct_object(yaml.ScalarNode(tag, text))
    assert reading == others
    assert type(reading) is type(others)


@given(st.integers(-(10**18) + 1, 10**18 - 1) | st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_typed_number_is_written_in_one_way(number: float) -> None:
    reading = read_plain(repr(number))
    assert isinstance(reading, Reading) or repr(reading) == repr(number)
