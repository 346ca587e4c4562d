"""Draws from a seed and a name: the same bytes everywhere, in every type as torch understands them."""

import hashlib
import struct

import pytest
import torch

from labctl.component.stopwatch import Stopwatch
from labctl.component.stream import consecutive_integers, distinct_integers, uniform_bytes
from labctl.component.worker import Draw


def test_a_uniform_draw_is_the_stream_read_as_signed_bytes() -> None:
    drawn = hashlib.shake_256(b"5/x").digest(300)
    values = [(2 * (byte - 256 if byte > 127 else byte) + 1) / 256 for byte in drawn]
    assert struct.unpack("<300f", uniform_bytes("5/x", 300, "float32", -8, 0)) == tuple(values)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize(("exponent", "offset"), [(-8, 0), (-11, 1), (-13, 0)])
def test_every_type_holds_the_same_values_rounded_to_nearest(dtype: torch.dtype, exponent: int, offset: int) -> None:
    wide = Draw(5, "cpu", Stopwatch()).uniform("x", (256,), torch.float32, exponent, offset)
    found = Draw(5, "cpu", Stopwatch()).uniform("x", (256,), dtype, exponent, offset)
    assert torch.equal(found, wide.to(dtype))


def test_a_draw_does_not_depend_on_other_draws() -> None:
    first, second = Draw(5, "cpu", Stopwatch()), Draw(5, "cpu", Stopwatch())
    first.uniform("other", (7,), torch.float32)
    one, other = (draw.uniform("x", (3, 4), torch.bfloat16) for draw in (first, second))
    assert torch.equal(one, other)
    assert one.data_ptr() != other.data_ptr()


def test_an_integer_type_has_no_uniform_draw() -> None:
    with pytest.raises(ValueError, match="int64"):
        uniform_bytes("5/x", 4, "int64", -8, 0)


def test_distinct_integers_are_distinct_and_ordered_by_their_keys() -> None:
    numbers = distinct_integers("9/slots", 10, 16)
    keys = hashlib.shake_256(b"9/slots").digest(128)
    assert len(set(numbers)) == 10
    assert numbers == sorted(range(16), key=lambda number: keys[8 * number : 8 * number + 8])[:10]


def test_consecutive_integers_start_below_the_bound() -> None:
    start = int.from_bytes(hashlib.shake_256(b"9/positions").digest(8), "big") % 100
    assert consecutive_integers("9/positions", 3, 100) == [start, start + 1, start + 2]


def test_a_draw_records_what_it_drew() -> None:
    draw = Draw(5, "cpu", Stopwatch())
    tensor = draw.distinct("slots", 3, 8)
    [record] = draw.drawn
    assert record["draw"] == {"kind": "distinct", "below": 8}
    assert record["stream"] == "5/slots"
    assert record["tensor"]["sha256"] == hashlib.sha256(struct.pack("<3q", *tensor.tolist())).hexdigest()
