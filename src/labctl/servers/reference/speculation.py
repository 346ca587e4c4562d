"""Prompt lookup: guess that what followed the same few tokens before follows them again."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PromptLookup:
    """How to draft: how many tokens, and how long the match must and may be."""

    draft_tokens: int
    longest: int
    shortest: int

    def draft(self, context: Sequence[int]) -> list[int]:
        """Exactly `draft_tokens` tokens that followed the latest longest match, or none."""
        text = "".join(map(chr, context))
        end = max(len(text) - self.draft_tokens, 0)
        for width in range(min(self.longest, len(text) - 1), self.shortest - 1, -1):
            found = text.rfind(text[-width:], 0, end)
            if found >= 0:
                start = found + width
                return [ord(token) for token in text[start : start + self.draft_tokens]]
        return []
