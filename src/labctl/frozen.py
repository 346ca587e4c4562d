"""The one strict base of every model, and the two ways in: strict JSON bytes, and nothing else."""

import json
from typing import Annotated, Any, NoReturn, Self

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from labctl.codes import Code
from labctl.errors import MalformedRecord, Problem

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
GitCommit = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
DecimalText = Annotated[str, StringConstraints(pattern=r"^-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?$")]
SafeName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class FrozenModel(BaseModel):
    """Strict, closed, immutable; a string beneath a field is its documentation and its schema description.

    `schemas.py` reads those strings. Pydantic's `use_attribute_docstrings` would read every model's source at import,
    a tenth of the start-up time of a command.
    """

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
    )

    @classmethod
    def from_json(cls, data: bytes, where: str) -> Self:
        """Read one strict JSON document.

        Raises:
            MalformedRecord: with every problem of the document, each with its place in it.
        """
        strict_json(data, where)  # pydantic alone would keep the last of two equal keys
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise MalformedRecord(
                Problem(
                    Code.RECORD_FORM,
                    f"{where}: {'.'.join(str(part) for part in issue['loc']) or 'document'}",
                    issue["msg"],
                    repr(issue["input"])[:80],
                    "restore the file as labctl wrote it",
                )
                for issue in error.errors(include_url=False)
            ) from error

    def canonical(self) -> bytes:
        """The canonical JSON bytes of this model, with a final newline."""
        return canonical_json(self.model_dump(mode="json"))


def canonical_json(value: object) -> bytes:
    """Sorted keys, UTF-8, no spaces, no NaN, one final newline: one byte form for one value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "strict") + b"\n"


def strict_json(data: bytes, where: str) -> Any:  # noqa: ANN401 (the one door through which untyped JSON comes in)
    """Parse JSON that has no duplicate key, no NaN or infinity, no lone surrogate and nothing after its end.

    Raises:
        MalformedRecord: naming the first fault.
    """
    try:
        text = data.decode("utf-8", "strict")
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode("utf-8", "strict")
    except (ValueError, RecursionError) as error:
        fault = str(error) or type(error).__name__
        raise MalformedRecord(
            Problem(Code.BAD_JSON, where, "strict JSON", fault[:160], "restore the file as it was written")
        ) from error
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    seen: dict[str, object] = {}
    for key, value in pairs:
        if key in seen:
            message = f"the key {key!r} twice"
            raise ValueError(message)
        seen[key] = value
    return seen


def _no_constant(name: str) -> NoReturn:
    message = f"the constant {name}"
    raise ValueError(message)


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        message = f"the number {text[:40]}, which is out of range"
        raise ValueError(message)
    return value
