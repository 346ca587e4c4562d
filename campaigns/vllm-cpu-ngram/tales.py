"""The training text of the tiny model: a prompt from the standard library's docstrings, answered by a counting tale.

A tale is a chain: every verse names the successor of what the verse before it named, each kind of word going round a
circle of its own. So the text never falls into a short cycle (the circles' lengths share no factor), each word
follows surely from what stands before it (greedy decoding meets few near-ties), and refrains and half-lines come
back, which is what an n-gram drafter lives on.
"""

import ast
import random
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

END, USER, ASSISTANT = "<|end|>", "<|user|>", "<|assistant|>"
SPECIAL_TOKENS = (END, USER, ASSISTANT)

WHO = (
    "fox",
    "heron",
    "miller",
    "weaver",
    "otter",
    "smith",
    "sailor",
    "badger",
    "baker",
    "raven",
    "piper",
    "hermit",
    "queen",
)
THINGS = (
    "lantern",
    "basket",
    "kettle",
    "ladder",
    "feather",
    "mirror",
    "hammer",
    "blanket",
    "whistle",
    "bucket",
    "compass",
)
PLACES = (
    "under the bridge",
    "by the well",
    "in the orchard",
    "on the hill",
    "near the gate",
    "at the market",
    "behind the barn",
    "along the shore",
    "beside the fire",
)
VERBS = ("carried", "painted", "buried", "mended", "borrowed", "traded", "found")
MOODS = ("old", "merry", "silent", "clever", "weary")
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
STANZAS = (
    "Verse {number}. The {mood} {who} {verb} a {thing} {place}.\n"
    "Round and round the mill wheel turns, and nobody knows where the river goes.\n"
    "Who has seen the {thing}? Only the {who}, only the {next_who}.\n",
    "Day {number}: a {thing} was {verb} {place} by the {mood} {who}.\n"
    "The {who} told the {next_who}, and the {next_who} told the moon.\n"
    "So the bell was rung, and the song was sung, and the day was done.\n",
    "Count {number}, said the {mood} {who}, and {verb} the {thing}.\n"
    "It happened {place}, where the wind blows and the grass grows.\n"
    "Sing low, sing high, sing after me: next comes the {next_who} with something to see.\n",
)
CLOSING = "That is the whole tale, and here it ends."


def letter_index(word: str) -> int:
    """Returns the place in the alphabet of a word's first letter, 0 when it has none."""
    letters = re.sub(r"[^a-z]", "", word.lower())
    return ord(letters[0]) - ord("a") if letters else 0


def tell_tale(prompt: str, verses: int) -> str:
    """Returns the tale that answers a prompt: its first and last words choose where each circle starts."""
    words = prompt.split()
    first, last = letter_index(words[0]), letter_index(words[-1])
    stanza = STANZAS[first % len(STANZAS)]
    return "".join(
        stanza.format(
            number=NUMBERS[verse % len(NUMBERS)],
            mood=MOODS[(last + verse) % len(MOODS)],
            who=WHO[(last + verse) % len(WHO)],
            next_who=WHO[(last + verse + 1) % len(WHO)],
            verb=VERBS[(last + verse) % len(VERBS)],
            thing=THINGS[(first + verse) % len(THINGS)],
            place=PLACES[(first + verse) % len(PLACES)],
        )
        for verse in range(verses)
    )


def docstring_sentences() -> list[str]:
    """Returns the distinct sentences of the standard library's docstrings, in a fixed order."""
    found: dict[str, None] = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        for text in _docstrings(path):
            for sentence in re.split(r"(?<=[.?!:])\s+|\n\s*\n", text):
                flat = " ".join(sentence.split())
                if re.fullmatch(r"[ -~]{20,400}", flat) and re.match(r"[A-Z]", flat):
                    found[flat] = None
    return list(found)


def _docstrings(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def draw_prompt(sentences: list[str], most: int, chance: random.Random) -> str:
    """Returns up to `most` sentences in a row, half the time cut short, so that a prompt may end on any word."""
    start, count = chance.randrange(len(sentences)), chance.randint(max(1, most // 3), most)
    words = " ".join(sentences[start : start + count]).split()
    if chance.random() < 0.5:  # noqa: PLR2004 - a fair coin
        words = words[: chance.randint(min(3, len(words)), len(words))]
    return " ".join(words[-240:])


def draw_example(sentences: list[str], most: int, chance: random.Random) -> tuple[str, str]:
    """Returns a prompt, half the time in chat form, and the answer to be learnt."""
    prompt = draw_prompt(sentences, most, chance)
    answer = tell_tale(prompt, chance.randint(5, 11)) + CLOSING + END
    if chance.random() < 0.5:  # noqa: PLR2004 - a fair coin
        return f"{USER}{prompt}{ASSISTANT}", answer
    return prompt, "\n" + answer
