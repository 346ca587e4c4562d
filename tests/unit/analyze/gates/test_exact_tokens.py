import pytest

from labctl.analyze.gates.exact_tokens import first_difference, is_degenerate


@pytest.mark.parametrize(
    ("observed", "expected", "position"),
    [
        ((1, 2, 3), (1, 2, 3), None),
        ((1, 2, 4), (1, 2, 3), 2),
        ((1, 2), (1, 2, 3), 2),
        ((1, 2, 3), (1, 2), 2),
        ((), (1,), 0),
        ((), (), None),
    ],
)
def test_the_first_difference_is_the_first_position_that_differs(
    observed: tuple[int, ...], expected: tuple[int, ...], position: int | None
) -> None:
    assert first_difference(observed, expected) == position


@pytest.mark.parametrize(
    ("token_ids", "answer"),
    [
        ((0,) * 512, True),
        ((0,) * 7, False),
        ((1, 2) * 20, True),
        (tuple(range(16)) * 4, True),
        (tuple(range(17)) * 4, False),
        (tuple(range(16)) * 4 + (99,), False),
        ((1, 2, 3, 4, 1, 2, 3, 4), False),
        (tuple(range(100)), False),
    ],
)
def test_one_token_or_a_short_cycle_that_fills_a_row_is_degenerate(token_ids: tuple[int, ...], answer: bool) -> None:
    assert is_degenerate(token_ids) is answer
