"""Words for messages: the nearest known word, and a value in short."""

from collections.abc import Iterable

_SHOWN_CHARACTERS = 60


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant, if one is near."""
    import difflib  # noqa: PLC0415 (start-up time; only a fault needs it)

    return next(iter(difflib.get_close_matches(word, list(words), n=1, cutoff=0.6)), None)


def shown(value: object) -> str:
    """A value as a message shows it: short, on one line, mappings and lists by their kind."""
    match value:
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case dict():
            return "a mapping" if value else "an empty mapping"
        case list() | tuple():
            return f"a list of {len(value)}" if value else "an empty list"
        case str():
            text = " ".join(value.split())
            return repr(text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…")
        case _:
            return str(value)[:_SHOWN_CHARACTERS]
