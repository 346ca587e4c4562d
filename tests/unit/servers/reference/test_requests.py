import json

import pytest

from labctl.servers.reference.generation import EndMark, Limits
from labctl.servers.reference.requests import Api, Offer, RequestRefused, read_request
from labctl.servers.reference.tokens import encode_text

OFFER = Offer("m", 64)
GOOD: dict[str, object] = {"model": "m", "prompt": " the cat", "temperature": 0}
CHAT: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "temperature": 0.0}


def refusal(fields: object, api: Api = Api.COMPLETIONS) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        read_request(json.dumps(fields).encode(), api, OFFER)
    return caught.value


def test_a_completion_request_is_understood() -> None:
    fields = GOOD | {"max_tokens": 3, "seed": 1, "stream": True, "stream_options": {"include_usage": True}}
    asked = read_request(json.dumps(fields | {"ignore_eos": True}).encode(), Api.COMPLETIONS, OFFER)
    assert asked.prompt == tuple(encode_text(" the cat"))
    assert asked.limits == Limits(3, EndMark.IGNORED)
    assert asked.flags == {"stream", "include_usage"}


def test_the_defaults_are_those_of_the_protocol() -> None:
    asked = read_request(json.dumps(GOOD).encode(), Api.COMPLETIONS, OFFER)
    assert asked.limits == Limits(16, EndMark.STOPS)
    assert asked.flags == frozenset()
    chat = read_request(json.dumps(CHAT).encode(), Api.CHAT, OFFER)
    assert chat.limits.max_tokens == OFFER.max_model_len - len(chat.prompt)


def test_another_model_is_not_found() -> None:
    assert refusal(GOOD | {"model": "other"}).status == 404


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"temperature": 0.7}, "temperature"),
        ({"temperature": None}, "temperature"),
        ({"temperature": False}, "temperature"),
        ({"seed": "1"}, "seed"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 64}, "context"),
        ({"stream": 1}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": {"more": True}}, "stream_options"),
        ({"ignore_eos": "no"}, "ignore_eos"),
        ({"messages": []}, "messages"),
        ({"top_p": 0.5, "best_of": 2}, "best_of, top_p"),
    ],
)
def test_what_the_server_does_not_do_is_refused_by_name(change: dict[str, object], word: str) -> None:
    refused = refusal(GOOD | change)
    assert refused.status == 400
    assert word in refused.message


@pytest.mark.parametrize(
    "messages",
    [None, [], ["Hi"], [{"role": "user"}], [{"role": "robot", "content": "Hi"}], [{"role": "user", "content": ["Hi"]}]],
)
def test_a_conversation_that_is_none_is_refused(messages: object) -> None:
    assert refusal(CHAT | {"messages": messages}, Api.CHAT).status == 400


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"prompt":"\\ud800"}', b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(RequestRefused) as caught:
        read_request(body, Api.COMPLETIONS, OFFER)
    assert caught.value.status == 400
