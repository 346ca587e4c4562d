"""Every code can be raised by one fault alone; every known fault has an answer that can be pointed at."""

from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import LabctlError
from labctl.records.verdict import VerdictKind
from tests.faults.registry import INJECTIONS
from tests.faults.table import KNOWN, PAGE, TOP, Fault, code_meanings, is_there, page, read_table

FAULTS = [fault for mechanism in read_table() for fault in mechanism.faults]
GATES = {path.stem for path in (TOP / "src/labctl/analyze/gates").glob("*.py")}


def test_every_code_has_an_injection() -> None:
    assert set(INJECTIONS) == set(Code)


@pytest.mark.parametrize("code", INJECTIONS)
def test_an_injection_raises_its_code_and_no_other(code: Code, tmp_path: Path) -> None:
    with pytest.raises(LabctlError) as caught:
        INJECTIONS[code](tmp_path)
    assert set(caught.value.codes) == {code}, str(caught.value)


def test_every_known_fault_is_in_the_table_once() -> None:
    assert sorted(fault.number for fault in FAULTS) == sorted(f"T{number:02d}" for number in range(1, KNOWN + 1))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.number)
def test_a_fault_has_an_answer_that_exists_and_tests_that_exist(fault: Fault) -> None:
    kind, _, name = fault.answer.partition(":")
    statuses = {"design": {0}, "build": {0}, "open": {0}, "gate": {5, 6}, "verdict": {0, 5}}
    assert fault.exit_status in statuses.get(kind, {3, 4, 5})
    assert kind in statuses or kind in set(Code)
    assert kind != "gate" or name in GATES
    assert kind != "verdict" or name in set(VerdictKind)
    assert [node for node in fault.tests if not is_there(node)] == []
    assert fault.tests or kind == "open"


def test_a_mechanism_answers_several_faults_or_gives_its_reason() -> None:
    assert [one.name for one in read_table() if len(one.faults) < 2 and not one.reason] == []


def test_a_mechanism_lies_where_the_table_says() -> None:
    places = [place for one in read_table() for place in one.where.split(", ") if place]
    assert [place for place in places if not (TOP / "src/labctl" / place).exists()] == []


def test_every_code_has_a_line_in_the_page() -> None:
    assert list(code_meanings()) == list(Code)


def test_the_page_is_what_the_table_gives() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `make docs`"
