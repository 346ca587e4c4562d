"""Layouts are derived from what was declared; not every view starts at offset 0."""

import pytest

from labctl.analyze.component.layout import owner_layout, select_view

DIMENSIONS = {"layers": 6, "hidden": 3072, "kv_heads": 2, "head_size": 128, "width": 1}
PACKED = (2, "layers", "width", "kv_heads", "head_size")


def test_an_owner_is_contiguous_from_offset_0() -> None:
    layout = owner_layout(PACKED, "bfloat16", DIMENSIONS)
    assert (layout.shape, layout.stride) == ((2, 6, 1, 2, 128), (1536, 256, 256, 128, 1))
    assert (layout.storage_offset, layout.storage_elements, layout.size_bytes) == (0, 3072, 6144)


@pytest.mark.parametrize("width", range(1, 9))
def test_the_second_view_starts_where_the_first_ends(width: int) -> None:
    owner = owner_layout(PACKED, "bfloat16", DIMENSIONS | {"width": width})
    keys, values = (select_view(owner, 0, index) for index in (0, 1))
    assert (keys.storage_offset, values.storage_offset) == (0, 6 * width * 2 * 128)
    assert values.shape == (6, width, 2, 128)
    assert values.stride == (width * 256, 256, 128, 1)


def test_a_view_of_an_inner_dimension_keeps_the_outer_strides() -> None:
    view = select_view(owner_layout((3, 4, 5), "float32", {}), 1, 2)
    assert (view.shape, view.stride, view.storage_offset, view.size_bytes) == ((3, 5), (20, 1), 10, 60)


def test_a_scalar_has_no_strides() -> None:
    assert owner_layout((), "int64", {}).stride == ()
