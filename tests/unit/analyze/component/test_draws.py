"""Draws are made again from their names: twice over, and as the worker side makes them."""

from hashlib import sha256

import pytest

from labctl.analyze.component.draws import draw_bytes, drawn_sha256
from labctl.component.stream import consecutive_integers, distinct_integers, uniform_bytes
from labctl.frozen import canonical_json
from labctl.records.component_row import DrawnTensor
from labctl.standalone.component_tensors import drawn_bytes
from tests.fakes.component_records import Doc

FLOATS = ("bfloat16", "float16", "float32", "float64")
UNIFORM: Doc = {"kind": "uniform", "exponent": -8, "offset": 0}


def drawn(draw: Doc, shape: list[int], dtype: str) -> DrawnTensor:
    place: Doc = {"name": "x", "shape": shape, "stride": [1] * len(shape), "dtype": dtype, "device": "cpu"}
    place |= {"storage_offset": 0, "data_ptr": 1, "storage_ptr": 1, "storage_bytes": 1, "bytes": 1, "sha256": "0" * 64}
    return DrawnTensor.from_json(canonical_json({"draw": draw, "stream": "7/x", "tensor": place}), "drawn")


def alone(draw: Doc, count: int, dtype: str) -> bytes | None:
    return drawn_bytes(draw, "7/x", count, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("exponent", "offset"), [(-8, 0), (-8, 1), (-20, 1), (8, 0)])
def test_a_uniform_draw_is_the_same_three_times(dtype: str, exponent: int, offset: int) -> None:
    draw: Doc = {"kind": "uniform", "exponent": exponent, "offset": offset}
    expected = uniform_bytes("7/x", 3000, dtype, exponent, offset)
    assert draw_bytes(drawn(draw, [30, 100], dtype)) == alone(draw, 3000, dtype) == expected
    assert drawn_sha256(drawn(draw, [30, 100], dtype)) == sha256(expected).hexdigest()


@pytest.mark.parametrize(("dtype", "size"), [("int64", 8), ("int32", 4), ("int16", 2), ("uint8", 1)])
def test_integers_are_the_same_three_times(dtype: str, size: int) -> None:
    for draw, numbers in (
        ({"kind": "distinct", "below": 100}, distinct_integers("7/x", 20, 100)),
        ({"kind": "consecutive", "below": 100}, consecutive_integers("7/x", 20, 100)),
    ):
        expected = b"".join(number.to_bytes(size, "little") for number in numbers)
        assert draw_bytes(drawn(draw, [20], dtype)) == alone(draw, 20, dtype) == expected


@pytest.mark.parametrize(
    ("draw", "shape", "dtype"),
    [
        (UNIFORM, [4], "int64"),
        (UNIFORM, [4], "complex64"),
        (UNIFORM, [1 << 20, 1 << 20], "float32"),
        ({"kind": "distinct", "below": 3}, [4], "int64"),
        ({"kind": "distinct", "below": 1 << 40}, [4], "int64"),
        ({"kind": "distinct", "below": 300}, [300], "uint8"),
        ({"kind": "consecutive", "below": 300}, [400], "int8"),
        ({"kind": "consecutive", "below": 300}, [4], "float32"),
    ],
)
def test_a_draw_that_gives_no_such_tensor_has_no_digest(draw: Doc, shape: list[int], dtype: str) -> None:
    tensor = drawn(draw, shape, dtype)
    count = 1
    for extent in shape:
        count *= extent
    assert draw_bytes(tensor) is None
    assert drawn_sha256(tensor) is None
    assert alone(draw, count, dtype) is None
