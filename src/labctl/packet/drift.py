"""Compare what a packet pins with what is found now, field by field."""

from collections.abc import Callable, Iterator

from labctl.codes import Code
from labctl.errors import LabctlError, Problem
from labctl.frozen import FrozenModel


def differences(where: str, frozen: FrozenModel, look: Callable[[], FrozenModel]) -> Iterator[Problem]:
    """Each field that is not as frozen, or why nothing could be compared."""
    try:
        found = look().model_dump(mode="json")
    except LabctlError as error:
        yield from error.problems
        return
    do = "restore what was frozen, or freeze a new packet"
    for name, expected in frozen.model_dump(mode="json").items():
        if found[name] != expected:
            yield Problem(Code.FILE_DRIFT, f"{where}: {name}", str(expected)[:200], str(found[name])[:200], do)
