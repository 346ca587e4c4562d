import json

import pytest
from pydantic import ValidationError

from labctl.records.requests import Generation, request_body

GENERATION = Generation(model="labctl-1", max_tokens=128, seed=1)


def test_a_text_becomes_a_completion_that_asks_for_ids_and_usage() -> None:
    assert json.loads(request_body(GENERATION, "Once upon")) == {
        "model": "labctl-1",
        "prompt": "Once upon",
        "max_tokens": 128,
        "temperature": 0,
        "seed": 1,
        "ignore_eos": False,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
    }


def test_messages_become_a_chat() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    body = json.loads(request_body(GENERATION, messages))
    assert body["messages"] == messages
    assert "prompt" not in body


def test_equal_requests_have_equal_bytes_and_other_prompts_other_bytes() -> None:
    assert request_body(GENERATION, "é") == request_body(Generation(seed=1, max_tokens=128, model="labctl-1"), "é")
    assert request_body(GENERATION, "é") != request_body(GENERATION, "e")


def test_ignore_eos_reaches_the_body() -> None:
    generation = Generation(model="m", max_tokens=1, seed=0, ignore_eos=True)
    assert json.loads(request_body(generation, "a"))["ignore_eos"] is True


@pytest.mark.parametrize("change", [{"temperature": 1}, {"max_tokens": 0}, {"top_p": 1}])
def test_what_is_not_measured_cannot_be_asked(change: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        Generation.model_validate({**GENERATION.model_dump(), **change})
