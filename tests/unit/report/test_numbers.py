import pytest

from labctl.records.verdict import Figure
from labctl.report.numbers import exact, full, short, signed, unit


def one(decimal: str, unit: str = "tokens/s", value: str = "1/3") -> Figure:
    return Figure(name="x", where="", value=value, decimal=decimal, unit=unit)


@pytest.mark.parametrize(
    ("decimal", "shown"),
    [
        ("1413.75068892", "1414"),
        ("123456.789123", "123457"),
        ("85.007438531", "85.01"),
        ("0.000123456789", "0.0001235"),
        ("-25.0519459762", "-25.05"),
        ("1002.5", "1002.5"),
        ("0", "0"),
        ("12000000", "12000000"),
    ],
)
def test_a_number_keeps_four_digits_and_its_whole_integer_part(decimal: str, shown: str) -> None:
    assert short(one(decimal)) == shown


def test_times_are_read_in_milliseconds() -> None:
    time = one("2912345", "ns")
    assert (short(time), full(time), unit(time)) == ("2.912", "2.912345", "ms")


def test_what_is_not_there_is_empty() -> None:
    assert (short(None), full(None)) == ("", "")


def test_a_gain_has_its_sign() -> None:
    assert (signed(one("41.447", "percent")), signed(one("-3.5", "percent"))) == ("+41.447 %", "-3.5 %")


def test_a_fraction_of_ninety_digits_is_not_shown() -> None:
    assert exact(one("1", value="1" * 90)) == "in `verdict.json`"
    assert exact(one("1", value="2005/2")) == "`2005/2`"
