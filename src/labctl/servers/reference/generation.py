"""Greedy generation, one decoder step at a time, with and without drafts; both give the same tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from labctl.servers.reference.decoder import Cache, Decoder
from labctl.servers.reference.speculation import PromptLookup
from labctl.servers.reference.tokens import END_OF_TEXT


class Finish(StrEnum):
    """Why a generation ended."""

    LENGTH = "length"
    STOP = "stop"


class EndMark(StrEnum):
    """What the end-of-text token does."""

    STOPS = "stops"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Limits:
    """When to end."""

    max_tokens: int
    end_mark: EndMark


@dataclass(frozen=True, slots=True)
class Step:
    """What one run of the decoder gave."""

    tokens: tuple[int, ...]
    drafted: int
    finish: Finish | None

    @property
    def accepted(self) -> int:
        """How many drafted tokens were kept; the last token of a step is always the decoder's own."""
        return len(self.tokens) - 1


def generate(
    decoder: Decoder, prompt: Sequence[int], cache: Cache, limits: Limits, lookup: PromptLookup | None
) -> Iterator[Step]:
    """Read what of the prompt is not in the cache yet, then give one step for each run of the decoder."""
    context = list(prompt)
    following = decoder.advance(context[cache.length :], cache)[-1:]
    drafted = 0
    while True:
        step = _step(following, drafted, limits, len(context) - len(prompt))
        context += step.tokens
        yield step
        if step.finish is not None:
            return
        # A draft may not pass the last token, so that every accepted token is also a token that was sent.
        room = limits.max_tokens - (len(context) - len(prompt)) - 1
        draft = lookup.draft(context) if lookup is not None and room >= lookup.draft_tokens else []
        following = _verified(decoder, context[-1], draft, cache)
        drafted = len(draft)


def _verified(decoder: Decoder, last: int, draft: list[int], cache: Cache) -> list[int]:
    following = decoder.advance([last, *draft], cache)
    agreed = 0
    while agreed < len(draft) and draft[agreed] == following[agreed]:
        agreed += 1
    cache.length -= len(draft) - agreed
    return following[: agreed + 1]


def _step(following: list[int], drafted: int, limits: Limits, said: int) -> Step:
    tokens = following
    finish = Finish.LENGTH if said + len(tokens) == limits.max_tokens else None
    if limits.end_mark is EndMark.STOPS and END_OF_TEXT in tokens:
        tokens = tokens[: tokens.index(END_OF_TEXT) + 1]
        finish = Finish.STOP
    return Step(tuple(tokens), drafted, finish)
