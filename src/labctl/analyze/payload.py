"""The JSON payloads of a stream's events, read into one accumulating answer; every deviation is a named fault."""

from dataclasses import dataclass, field
from enum import StrEnum

import orjson

from labctl.analyze.sse import ServerEvent

DONE = b"[DONE]"
MAX_TOKEN_ID = 2**31 - 1


class RowFault(StrEnum):
    """Why a row does not count."""

    TRANSPORT = "transport"  # reset, time-out, over the size limit, interrupted
    FRAMING = "framing"  # not one whole HTTP response
    STATUS = "status"  # any other status than 200
    NOT_A_STREAM = "not_a_stream"  # a body of another type, such as plain JSON
    CUT_EVENT = "cut_event"  # the body ends inside an event
    ERROR_EVENT = "error_event"  # `event: error`, or an error object, at any point
    BAD_JSON = "bad_json"  # an event that does not parse
    BAD_SHAPE = "bad_shape"  # an event that parses into something unexpected
    NO_FINISH = "no_finish"
    NO_USAGE = "no_usage"
    NO_DONE = "no_done"
    AFTER_END = "after_end"  # tokens after the finish reason, or anything after [DONE]
    TOKEN_COUNT = "token_count"  # other tokens than usage says  # noqa: S105 (no password)
    NO_PROMPT_IDS = "no_prompt_ids"
    CLOCK_STEP = "clock_step"  # the wall clock moved against the monotonic one
    SUSPENDED = "suspended"  # the machine slept
    STAMP_ORDER = "stamp_order"  # a later read has an earlier stamp
    STAMP_RANGE = "stamp_range"  # a stamp lies where it cannot have been


@dataclass(frozen=True, slots=True)
class Usage:
    """What the server says that it processed."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None


@dataclass(slots=True)
class Answer:
    """What the events of one row said, in order."""

    token_ids: list[int] = field(default_factory=list)
    token_counts: list[tuple[int, int]] = field(default_factory=list)
    """For each event with tokens: its index, and how many."""
    text: list[str] = field(default_factory=list)
    finish_reasons: list[str] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    prompt_token_ids: tuple[int, ...] | None = None
    models: dict[str, None] = field(default_factory=dict)
    is_done: bool = False
    faults: list[tuple[RowFault, str]] = field(default_factory=list)

    def take(self, index: int, event: ServerEvent) -> None:
        """Add what one event says."""
        if self.is_done:
            self.faults.append((RowFault.AFTER_END, f"event {index} after [DONE]"))
        if event.name == "error":
            self.faults.append((RowFault.ERROR_EVENT, f"event {index}: {event.data[:120]!r}"))
        elif event.data == DONE:
            self.is_done = True
        else:
            self._take_json(index, event.data)

    def _take_json(self, index: int, data: bytes) -> None:
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            self.faults.append((RowFault.BAD_JSON, f"event {index}: {data[:120]!r}"))
            return
        if isinstance(value, dict) and value.get("error") is not None:
            self.faults.append((RowFault.ERROR_EVENT, f"event {index}: {data[:120]!r}"))
            return
        try:
            self._take_chunk(index, value)
        except (KeyError, TypeError, IndexError) as error:
            self.faults.append((RowFault.BAD_SHAPE, f"event {index}: {type(error).__name__} {error}"))

    def _take_chunk(self, index: int, chunk: dict[str, object]) -> None:
        self.models[_text(chunk["model"])] = None
        choices = chunk["choices"]
        if not isinstance(choices, list) or len(choices) > 1:
            message = "choices are not a list of at most one"
            raise TypeError(message)
        self._take_prompt_ids(chunk.get("prompt_token_ids"))
        if choices:
            self._take_choice(index, choices[0])
        if chunk.get("usage") is not None:
            self.usages.append(_usage(chunk["usage"]))

    def _take_choice(self, index: int, choice: dict[str, object]) -> None:
        if choice["index"] != 0:
            message = f"choice {choice['index']!r}"
            raise TypeError(message)
        self._take_prompt_ids(choice.get("prompt_token_ids"))
        ids = _ids(choice.get("token_ids") or [])
        if self.finish_reasons and ids:
            self.faults.append((RowFault.AFTER_END, f"event {index} has tokens after the finish reason"))
        if ids:
            self.token_ids.extend(ids)
            self.token_counts.append((index, len(ids)))
        self.text.append(_choice_text(choice))
        if choice.get("finish_reason") is not None:
            self.finish_reasons.append(_text(choice["finish_reason"]))

    def _take_prompt_ids(self, ids: object) -> None:
        if ids is None:
            return
        if self.prompt_token_ids is not None:
            message = "prompt token ids twice"
            raise TypeError(message)
        self.prompt_token_ids = tuple(_ids(ids))

    def closing_faults(self) -> list[tuple[RowFault, str]]:
        """What is missing or contradictory once the stream is over."""
        faults: list[tuple[RowFault, str]] = []
        if len(self.finish_reasons) != 1:
            faults.append((RowFault.NO_FINISH, f"{len(self.finish_reasons)} finish reasons"))
        if len(self.usages) != 1:
            faults.append((RowFault.NO_USAGE, f"{len(self.usages)} usage objects"))
        if not self.is_done:
            faults.append((RowFault.NO_DONE, "no [DONE]"))
        if not self.prompt_token_ids:
            faults.append((RowFault.NO_PROMPT_IDS, "no prompt token ids"))
        return [*faults, *self._count_faults()]

    def _count_faults(self) -> list[tuple[RowFault, str]]:
        if len(self.usages) != 1:
            return []
        usage = self.usages[0]
        faults = []
        if usage.completion_tokens != len(self.token_ids) or not self.token_ids:
            told = f"usage says {usage.completion_tokens} tokens, {len(self.token_ids)} ids came"
            faults.append((RowFault.TOKEN_COUNT, told))
        if self.prompt_token_ids and usage.prompt_tokens != len(self.prompt_token_ids):
            told = f"usage says {usage.prompt_tokens} prompt tokens, {len(self.prompt_token_ids)} ids came"
            faults.append((RowFault.TOKEN_COUNT, told))
        return faults


def _choice_text(choice: dict[str, object]) -> str:
    if "text" in choice:
        return _text(choice["text"])
    delta = choice["delta"]
    if not isinstance(delta, dict):
        message = "a delta is not an object"
        raise TypeError(message)
    content = delta.get("content")
    return "" if content is None else _text(content)


def _text(value: object) -> str:
    if not isinstance(value, str):
        message = f"{value!r:.60} is not text"
        raise TypeError(message)
    return value


def _ids(value: object) -> list[int]:
    if not isinstance(value, list) or not all(type(one) is int and 0 <= one <= MAX_TOKEN_ID for one in value):
        message = f"{value!r:.60} is not a list of token ids"
        raise TypeError(message)
    return value


def _usage(value: object) -> Usage:
    if not isinstance(value, dict):
        message = "usage is not an object"
        raise TypeError(message)
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        _count(value["prompt_tokens"]),
        _count(value["completion_tokens"]),
        None if cached is None else _count(cached),
    )


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        message = f"{value!r:.60} is not a count"
        raise TypeError(message)
    return value
