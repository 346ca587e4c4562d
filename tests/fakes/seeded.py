"""Random numbers that are the same in every run: `seeded(7)`."""

import random


def seeded(number: int) -> random.Random:
    """A source of its own, which no other test moves on."""
    return random.Random(number)  # noqa: S311 (tests keep no secrets)
