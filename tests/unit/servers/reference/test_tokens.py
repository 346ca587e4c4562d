from hypothesis import given
from hypothesis import strategies as st

from labctl.servers.reference.tokens import (
    BEGIN_OF_TEXT,
    END_OF_TEXT,
    PIECES,
    VOCABULARY_SIZE,
    TextStream,
    decode_tokens,
    encode_text,
    token_bytes,
)


def test_the_vocabulary_has_no_piece_twice() -> None:
    assert len(set(PIECES)) == len(PIECES)
    assert len({token_bytes(token) for token in range(VOCABULARY_SIZE)}) == VOCABULARY_SIZE - 1  # both marks are empty


def test_the_longest_piece_is_taken() -> None:
    assert [token_bytes(token) for token in encode_text(" they")] == [b"", b" they"]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_comes_back(text: str) -> None:
    ids = encode_text(text)
    assert ids[0] == BEGIN_OF_TEXT
    assert END_OF_TEXT not in ids
    assert decode_tokens(ids) == text


@given(st.lists(st.integers(0, VOCABULARY_SIZE - 1), max_size=40), st.data())
def test_streamed_pieces_are_the_text_wherever_it_is_cut(tokens: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(tokens)))
    stream = TextStream()
    pieces = [stream.push(tokens[:cut]), stream.push(tokens[cut:]), stream.finish()]
    assert "".join(pieces) == decode_tokens(tokens)
    "".join(pieces).encode("utf-8")


def test_an_unfinished_character_is_held_back() -> None:
    stream = TextStream()
    first, second = "é".encode()
    assert stream.push([first]) == ""
    assert stream.push([second]) == "é"
    assert stream.push([first]) == ""
    assert stream.finish() == "\ufffd"
