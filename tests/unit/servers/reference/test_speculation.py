from hypothesis import given
from hypothesis import strategies as st

from labctl.servers.reference.speculation import PromptLookup


def test_what_followed_the_same_tokens_is_drafted() -> None:
    assert PromptLookup(2, longest=3, shortest=2).draft([1, 2, 3, 4, 5, 1, 2]) == [3, 4]


def test_a_longer_match_goes_before_a_later_one() -> None:
    context = [7, 1, 2, 8, 8, 9, 1, 2, 5, 5, 7, 1, 2]
    assert PromptLookup(2, longest=3, shortest=2).draft(context) == [8, 8]


def test_of_equal_matches_the_latest_is_taken() -> None:
    assert PromptLookup(1, longest=2, shortest=2).draft([1, 2, 3, 1, 2, 4, 1, 2]) == [4]


def test_no_match_of_the_shortest_length_drafts_nothing() -> None:
    assert PromptLookup(2, longest=4, shortest=2).draft([1, 2, 3, 4, 9, 2]) == []


def test_too_few_followers_draft_nothing() -> None:
    assert PromptLookup(4, longest=2, shortest=2).draft([1, 2, 1, 2]) == []


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 5), st.integers(1, 3))
def test_a_draft_is_whole_and_stands_in_the_context(context: list[int], count: int, shortest: int) -> None:
    draft = PromptLookup(count, longest=4, shortest=shortest).draft(context)
    assert len(draft) in (0, count)
    wanted = context[-shortest:] + draft
    if draft:
        assert any(context[start : start + len(wanted)] == wanted for start in range(len(context)))
