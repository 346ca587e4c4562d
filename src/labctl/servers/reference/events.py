"""The JSON bodies of answers and of stream events, in the shape in which vLLM sends them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from labctl.servers.reference.generation import Step
from labctl.servers.reference.requests import Api, Asked

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Usage:
    """How many tokens a request took; `cached_tokens` is null where the server does not tell."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None

    def as_json(self) -> dict[str, object]:
        """The `usage` object."""
        body: dict[str, object] = {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "completion_tokens": self.completion_tokens,
        }
        if self.cached_tokens is not None:
            body["prompt_tokens_details"] = {"cached_tokens": self.cached_tokens}
        return body


@dataclass(frozen=True, slots=True)
class Answer:
    """What all events of one answer share."""

    answer_id: str
    created_s: int
    model_name: str
    asked: Asked

    def opening(self) -> list[dict[str, object]]:
        """What is sent before the first token: in a chat, who speaks."""
        if self.asked.api is Api.COMPLETIONS:
            return []
        choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
        return [self._head("chat.completion.chunk") | {"choices": [choice]} | self._prompt_ids()]

    def event(self, step: Step, text: str, before: int) -> dict[str, object]:
        """One step of the decoder, after `before` earlier tokens."""
        if self.asked.api is Api.CHAT:
            choice = self._choice(step.tokens, step.finish) | {"delta": {"content": text}}
            return self._head("chat.completion.chunk") | {"choices": [choice]}
        choice = self._choice(step.tokens, step.finish) | {"text": text, "stop_reason": None, "prompt_token_ids": None}
        if before == 0:
            choice |= self._prompt_ids()
        return self._head("text_completion") | {"choices": [choice], "usage": None}

    def usage_event(self, usage: Usage) -> dict[str, object]:
        """The last event before the end mark."""
        kind = "chat.completion.chunk" if self.asked.api is Api.CHAT else "text_completion"
        return self._head(kind) | {"choices": [], "usage": usage.as_json()}

    def whole(self, steps: Sequence[Step], text: str, usage: Usage) -> dict[str, object]:
        """The one body of an answer that is not streamed."""
        tokens = [token for step in steps for token in step.tokens]
        choice = self._choice(tokens, steps[-1].finish) | {"stop_reason": None}
        if self.asked.api is Api.CHAT:
            choice["message"] = {"role": "assistant", "content": text}
            body = self._head("chat.completion") | {"choices": [choice]} | self._prompt_ids()
        else:
            choice["text"] = text
            body = self._head("text_completion") | {"choices": [choice | self._prompt_ids()]}
        return body | {"usage": usage.as_json()}

    def _head(self, kind: str) -> dict[str, object]:
        return {"id": self.answer_id, "object": kind, "created": self.created_s, "model": self.model_name}

    def _choice(self, tokens: Sequence[int], finish: str | None) -> dict[str, object]:
        ids = list(tokens) if "return_token_ids" in self.asked.flags else None
        return {"index": 0, "logprobs": None, "finish_reason": finish, "token_ids": ids}

    def _prompt_ids(self) -> dict[str, object]:
        return {"prompt_token_ids": list(self.asked.prompt) if "return_token_ids" in self.asked.flags else None}


def stream_event(body: dict[str, object]) -> bytes:
    """One server-sent event."""
    return b"data: " + json_bytes(body) + b"\n\n"


def json_bytes(body: dict[str, object]) -> bytes:
    """Compact JSON in UTF-8."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def error_body(message: str, kind: str, status: int) -> dict[str, object]:
    """What a refused request gets."""
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}
