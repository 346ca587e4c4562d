"""Texts one of which stands in every line that a regular expression matches, so that few lines need to be matched.

Read off the expression's own text, and never guessed: what is not understood gives no text, and then every line is
matched. Alternatives give one text each; what may be absent, a class or a look-around gives none.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

Literals = frozenset[bytes]
NONE: Literals = frozenset()
SHORTEST = 2
_QUANTIFIER = re.compile(r"[*+?]|\{([0-9]*)(?:,[0-9]*)?\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_NAMED = re.compile(r"\?P<[A-Za-z_][A-Za-z0-9_]*>")
_ZERO_WIDTH = "bBAZ"


@lru_cache(maxsize=1024)  # every start of a run is searched for the same patterns
def needed_literals(pattern: str) -> Literals:
    """The texts one of which every match holds; empty where there is no telling."""
    reader = _Reader(pattern)
    found = reader.alternatives()
    return found if reader.at == len(pattern) and not reader.is_lost and _worth(found) >= SHORTEST else NONE


def _worth(found: Literals) -> int:
    return min(map(len, found), default=0)


@dataclass(slots=True)
class _Branch:
    """One alternative, as far as it is read: the text that goes on, and the best texts so far."""

    run: str = ""
    best: Literals = NONE

    def literal(self, character: str) -> None:
        """The next character is this one."""
        self.run += character

    def cut(self, *, has_last: bool = True) -> None:
        """The text ends here, with or without its last character."""
        self.offer(frozenset({(self.run if has_last else self.run[:-1]).encode()}))
        self.run = ""

    def offer(self, found: Literals) -> None:
        """Texts one of which stands in every match of this alternative."""
        if _worth(found) > _worth(self.best):
            self.best = found


@dataclass(slots=True)
class _Reader:
    """Reads an expression from left to right."""

    pattern: str
    at: int = 0
    is_lost: bool = False

    def alternatives(self) -> Literals:
        """The texts of everything up to the end, or up to the bracket that closes the group."""
        found: list[Literals] = []
        branch = _Branch()
        while self.at < len(self.pattern) and self.pattern[self.at] != ")" and not self.is_lost:
            if self.pattern[self.at] == "|":
                self.at += 1
                branch.cut()
                found.append(branch.best)
                branch = _Branch()
            else:
                self._item(branch)
        branch.cut()
        found.append(branch.best)
        return NONE if any(not one or b"" in one for one in found) else frozenset().union(*found)

    def _item(self, branch: _Branch) -> None:
        character = self.pattern[self.at]
        match character:
            case "(":
                branch.cut()
                self._group(branch)
            case "[":
                self._skip(_CLASS, branch)
            case "\\":
                self._escape(branch)
            case "." | "^" | "$":
                self.at += 1
                branch.cut()
                self._quantified(branch, is_text=False)
            case _:
                self.at += 1
                branch.literal(character)
                self._quantified(branch, is_text=True)

    def _skip(self, shape: re.Pattern[str], branch: _Branch) -> None:
        found = shape.match(self.pattern, self.at)
        self.is_lost = self.is_lost or found is None
        self.at = self.at if found is None else found.end()
        branch.cut()
        self._quantified(branch, is_text=False)

    def _escape(self, branch: _Branch) -> None:
        escaped = self.pattern[self.at + 1 : self.at + 2]
        self.at += 2
        if escaped and not escaped.isalnum():
            branch.literal(escaped)
            self._quantified(branch, is_text=True)
            return
        branch.cut()
        # A digit is a reference, and letters such as x begin longer escapes.
        self.is_lost = self.is_lost or not escaped or escaped not in f"dDsSwW{_ZERO_WIDTH}"
        self._quantified(branch, is_text=False)

    def _group(self, branch: _Branch) -> None:
        self.at += 1
        is_plain = self.pattern[self.at : self.at + 1] != "?"
        named = _NAMED.match(self.pattern, self.at)
        is_look = self.pattern[self.at : self.at + 2] in ("?=", "?!", "?<") and named is None
        if named is not None:
            self.at = named.end()
        elif self.pattern[self.at : self.at + 2] == "?:":
            self.at += 2
        elif is_look:
            self.at += 3 if self.pattern[self.at : self.at + 2] == "?<" else 2
        elif not is_plain:
            self.is_lost = True  # flags, comments, conditions
            return
        found = self.alternatives()
        self.is_lost = self.is_lost or self.pattern[self.at : self.at + 1] != ")"
        self.at += 1
        if self._may_be_absent() or is_look:
            return
        branch.offer(found)

    def _quantified(self, branch: _Branch, *, is_text: bool) -> None:
        """What follows a character: nothing, or how often it stands."""
        before = self.at
        may_be_absent = self._may_be_absent()
        if is_text and self.at != before:
            branch.cut(has_last=not may_be_absent)

    def _may_be_absent(self) -> bool:
        found = _QUANTIFIER.match(self.pattern, self.at)
        if found is None:
            return False
        self.at = found.end()
        if self.pattern[self.at : self.at + 1] in ("?", "+"):
            self.at += 1
        return found[0] in ("*", "?") or (found[0][0] == "{" and int(found[1] or "0") == 0)
