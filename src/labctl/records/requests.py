"""The body of a generation request: a pure function, so the analyzer can build it again and compare it."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, PositiveInt

from labctl.frozen import FrozenModel, canonical_json


class Generation(FrozenModel):
    """What every request of a campaign asks for, apart from its prompt."""

    model: str
    """The served model name."""
    max_tokens: PositiveInt
    """The most tokens of one answer."""
    seed: int
    """The sampling seed, sent although greedy decoding needs none."""
    temperature: Annotated[int, Field(ge=0, le=0)] = 0
    """Greedy decoding; nothing else is measured."""
    ignore_eos: bool = False
    """Whether the server is told to go on after its end-of-text token."""


def request_body(generation: Generation, prompt: str | Sequence[Mapping[str, str]]) -> bytes:
    """The JSON body of one request: a completion for a text, a chat for messages (`role`, `content`)."""
    asked: dict[str, object] = {
        **generation.model_dump(mode="json"),
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
    }
    if isinstance(prompt, str):
        asked["prompt"] = prompt
    else:
        asked["messages"] = [dict(message) for message in prompt]
    return canonical_json(asked).removesuffix(b"\n")
