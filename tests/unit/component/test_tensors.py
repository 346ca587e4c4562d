"""Tensor records and raw-bit comparison."""

import hashlib

import pytest
import torch

from labctl.component.tensors import (
    challenged_record,
    content_sha256,
    first_difference,
    host_copy,
    on_host,
    place_record,
    tensor_record,
)


def test_a_view_records_its_offset_and_its_owner() -> None:
    owner = torch.arange(24, dtype=torch.int16).reshape(2, 3, 4)
    record = place_record("view", owner[1])
    assert (record["shape"], record["stride"], record["storage_offset"]) == ([3, 4], [4, 1], 12)
    assert record["storage_ptr"] == owner.data_ptr()
    assert record["data_ptr"] == owner.data_ptr() + 24
    assert record["storage_bytes"] == 48


def test_the_digest_is_of_the_elements_in_row_major_order() -> None:
    turned = torch.arange(6, dtype=torch.int32).reshape(2, 3).t()
    record = tensor_record("turned", turned)
    assert record["sha256"] == hashlib.sha256(turned.contiguous().numpy().tobytes()).hexdigest()
    assert (record["bytes"], record["stride"]) == (24, [1, 3])


def test_an_empty_tensor_has_the_digest_of_nothing() -> None:
    assert content_sha256(torch.empty(0)) == hashlib.sha256(b"").hexdigest()


def test_the_challenge_stands_behind_the_bytes() -> None:
    tensor = torch.arange(5, dtype=torch.uint8)
    record, challenged = challenged_record("x", tensor, tensor, b"/nonce/7")
    assert record["sha256"] == hashlib.sha256(bytes(range(5))).hexdigest()
    assert challenged == hashlib.sha256(bytes(range(5)) + b"/nonce/7").hexdigest()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int8])
def test_one_flipped_bit_is_found_where_it_is(dtype: torch.dtype) -> None:
    control = torch.ones(3, 4, 5, dtype=dtype)
    candidate = control.clone()
    candidate.view(torch.uint8)[1, 2, 3 * control.element_size()] ^= 1
    found = first_difference(control, candidate)
    assert found is not None
    assert (found["index"], found["differing_elements"]) == ([1, 2, 3], 1)
    assert int(found["expected_bits"], 16) ^ int(found["actual_bits"], 16) == 1
    assert len(found["expected_bits"]) == 2 * control.element_size()


def test_the_first_of_several_differences_is_told_with_their_number() -> None:
    control = torch.zeros(4, dtype=torch.bfloat16)
    candidate = torch.tensor([0, 1, 0, 2], dtype=torch.bfloat16)
    expected = {"index": [1], "expected_bits": "0000", "actual_bits": "3f80", "differing_elements": 2}
    assert first_difference(control, candidate) == expected


def test_equal_values_with_other_bits_differ() -> None:
    found = first_difference(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert found is not None
    assert (found["expected_bits"], found["actual_bits"]) == ("00000000", "80000000")


def test_equal_bits_of_no_number_do_not_differ() -> None:
    nothing = torch.tensor([float("nan")])
    assert first_difference(nothing, nothing.clone()) is None


def test_another_shape_with_other_bytes_differs_without_an_index() -> None:
    found = first_difference(torch.zeros(2, 2), torch.ones(4))
    assert found is not None
    assert (found["index"], found["expected_bits"], found["actual_bits"]) == ([], "00", "80")
    assert first_difference(torch.zeros(2, 2), torch.zeros(4)) is None


def test_a_host_copy_is_not_reached_by_later_writes() -> None:
    tensor = torch.zeros(3)
    copied, itself = host_copy(tensor), on_host(tensor)
    tensor.add_(1)
    assert torch.equal(copied, torch.zeros(3))
    assert itself is tensor
