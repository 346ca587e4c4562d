"""Every code can be raised by one fault alone; every known fault has an answer that can be pointed at."""

from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import LabctlError
from tests.faults.registry import INJECTIONS


def test_every_code_has_an_injection() -> None:
    assert set(INJECTIONS) == set(Code)


@pytest.mark.parametrize("code", INJECTIONS)
def test_an_injection_raises_its_code_and_no_other(code: Code, tmp_path: Path) -> None:
    with pytest.raises(LabctlError) as caught:
        INJECTIONS[code](tmp_path)
    assert set(caught.value.codes) == {code}, str(caught.value)
