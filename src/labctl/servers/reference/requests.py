"""What a request may ask for: a closed subset, and a reason for everything else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from labctl.servers.reference.generation import EndMark, Limits
from labctl.servers.reference.tokens import encode_text


class Api(StrEnum):
    """The two ways to ask."""

    COMPLETIONS = "completions"
    CHAT = "chat"


class RequestRefused(Exception):
    """The answer is a JSON error body with this status."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was understood."""

    api: Api
    prompt: tuple[int, ...]
    limits: Limits
    flags: frozenset[str]
    """Those of `stream`, `include_usage` and `return_token_ids` that are on."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What the server can be asked for."""

    model_name: str
    max_model_len: int


_SHARED_FIELDS = frozenset(
    ("model", "stream", "stream_options", "return_token_ids", "temperature", "seed", "max_tokens", "ignore_eos")
)
_OWN_FIELDS = {
    Api.COMPLETIONS: frozenset(("prompt",)),
    Api.CHAT: frozenset(("messages", "max_completion_tokens")),
}
_DEFAULT_COMPLETION_TOKENS = 16


def read_request(body: bytes, api: Api, offer: Offer) -> Asked:
    """Understand the body of a request.

    Raises:
        RequestRefused: with status 404 for another model and 400 for everything else.
    """
    fields = _object(body)
    _require_known(fields, _SHARED_FIELDS | _OWN_FIELDS[api])
    _require_model(fields, offer)
    _require_greedy(fields)
    prompt = tuple(encode_text(_prompt_text(fields, api)))
    max_tokens = _max_tokens(fields, api, offer.max_model_len - len(prompt))
    end_mark = EndMark.IGNORED if _switch(fields, "ignore_eos") else EndMark.STOPS
    return Asked(api, prompt, Limits(max_tokens, end_mark), _flags(fields))


def _object(body: bytes) -> Mapping[str, object]:
    try:
        value = json.loads(body.decode("utf-8"))
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise _bad(f"the body is not JSON in UTF-8: {error}") from error
    if not isinstance(value, dict):
        raise _bad("the body is not a JSON object")
    return value


def _require_known(fields: Mapping[str, object], known: frozenset[str]) -> None:
    unknown = sorted(set(fields) - known)
    if unknown:
        raise _bad(f"this server does not know {', '.join(unknown)}")


def _require_model(fields: Mapping[str, object], offer: Offer) -> None:
    model = fields.get("model", offer.model_name)
    if model != offer.model_name:
        raise RequestRefused(404, "NotFoundError", f"The model `{model}` does not exist.")


def _require_greedy(fields: Mapping[str, object]) -> None:
    temperature = fields.get("temperature")
    if isinstance(temperature, bool) or temperature != 0:
        raise _bad(f"temperature must be 0, got {temperature!r}: this server decodes greedily")
    seed = fields.get("seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise _bad(f"seed must be an integer, got {seed!r}")


def _prompt_text(fields: Mapping[str, object], api: Api) -> str:
    if api is Api.CHAT:
        return _conversation(fields.get("messages"))
    prompt = fields.get("prompt")
    if not isinstance(prompt, str):
        raise _bad("prompt must be one string")
    return prompt


def _conversation(messages: object) -> str:
    if not isinstance(messages, list) or not messages:
        raise _bad("messages must be a list that is not empty")
    return "".join(_turn(message) for message in messages) + "assistant:"


def _turn(message: object) -> str:
    if not isinstance(message, dict) or set(message) != {"role", "content"}:
        raise _bad("a message must have role and content and nothing else")
    role, content = message["role"], message["content"]
    if role not in ("system", "user", "assistant") or not isinstance(content, str):
        raise _bad("a role must be system, user or assistant, and a content one string")
    return f"{role}: {content}\n"


def _max_tokens(fields: Mapping[str, object], api: Api, room: int) -> int:
    name = "max_completion_tokens" if "max_completion_tokens" in fields else "max_tokens"
    count = fields.get(name)
    if count is None:
        count = max(room, 1) if api is Api.CHAT else _DEFAULT_COMPLETION_TOKENS
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise _bad(f"{name} must be at least 1, got {count!r}")
    if count > room:
        raise _bad(f"the prompt and {count} tokens are longer than this model's context, which leaves {room}")
    return count


def _flags(fields: Mapping[str, object]) -> frozenset[str]:
    options = fields.get("stream_options")
    if options is not None and (not isinstance(options, dict) or set(options) - {"include_usage"}):
        raise _bad("stream_options may hold include_usage and nothing else")
    found = {name for name in ("stream", "return_token_ids") if _switch(fields, name)}
    if options and _switch(options, "include_usage"):
        found.add("include_usage")
    if options is not None and "stream" not in found:
        raise _bad("stream_options are for streams")
    return frozenset(found)


def _switch(fields: Mapping[str, object], name: str) -> bool:
    value = fields.get(name)
    if value is None or isinstance(value, bool):
        return value is True
    raise _bad(f"{name} must be true or false, got {value!r}")


def _bad(message: str) -> RequestRefused:
    return RequestRefused(400, "BadRequestError", message)
