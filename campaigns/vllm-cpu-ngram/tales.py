"""The training text of the tiny model: a prompt from the standard library's docstrings, answered by a counting tale.

Every verse names one thing more: the successors of what the verse before it named, each kind of word going round a
circle of its own, and then what came before. So the text never falls into a short cycle (the circles' lengths share no
factor), each word follows surely from what stands before it (greedy decoding meets few near-ties), and much of a verse
was said before, which is what an n-gram drafter lives on.
"""

import ast
import random
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

END, USER, ASSISTANT = "<|end|>", "<|user|>", "<|assistant|>"
SPECIAL_TOKENS = (END, USER, ASSISTANT)
CLOSING = "That is the whole tale, and here it ends."
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
VERBS = ("carried", "painted", "buried", "mended", "borrowed", "traded", "found")
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True)
class Form:
    """One way to tell a tale."""

    verse: str
    item: str
    link: str
    remembered: int
    """How many items a verse holds at most: the new one and those before it."""


FORMS = (
    Form("This is {items}.\n", "the {who} that {verb} the {thing}", ", beside ", 4),
    Form(
        "So the bell was rung and the song was sung for {items}, and the old moon over the hill.\n",
        "the {who} and the {thing}",
        ", for ",
        1,
    ),
    Form("Day {number} brought {items}.\n", "a {thing} for the {who}", ", and ", 5),
)


def letter_index(word: str) -> int:
    """Returns the place in the alphabet of a word's first letter, 0 when it has none."""
    letters = re.sub(r"[^a-z]", "", word.lower())
    return ord(letters[0]) - ord("a") if letters else 0


def tell_tale(prompt: str, verses: int) -> str:
    """Returns the tale that answers a prompt: its first and last words choose the form and where each circle starts."""
    words = prompt.split()
    first, last = letter_index(words[0]), letter_index(words[-1])
    form = FORMS[first % len(FORMS)]
    items = [_tell_item(form, first + turn, last + turn) for turn in range(verses)]
    return "".join(
        form.verse.format(
            number=NUMBERS[turn % len(NUMBERS)],
            items=form.link.join(reversed(items[max(0, turn + 1 - form.remembered) : turn + 1])),
        )
        for turn in range(verses)
    )


def _tell_item(form: Form, first: int, last: int) -> str:
    return form.item.format(who=WHO[last % len(WHO)], verb=VERBS[first % len(VERBS)], thing=THINGS[first % len(THINGS)])


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
    answer = tell_tale(prompt, chance.randint(5, 9)) + CLOSING + END
    if chance.random() < 0.5:  # noqa: PLR2004 - a fair coin
        return f"{USER}{prompt}{ASSISTANT}", answer
    return prompt, "\n" + answer
