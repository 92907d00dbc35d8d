"""Texts made by chance that match a regular expression: what `random` returns.

Reads RE2 syntax itself, as far as it says which characters come next: classes, groups, alternatives and repetition.
Anchors and word borders make no characters. Whatever RE2 refuses is refused here too, with the same text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError, LimitError
from engine.lang import regex

from .samplesets import ANY, escaped_set, folded, named_set, negated

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.lang.chance import Chance

    from .values import Env

    Maker = Callable[["_Making"], None]

MAX_LENGTH: Final = 65_536
MAX_NESTING: Final = 60
OPEN_ENDED: Final = 32
"""Most repetitions that `*`, `+` and `{n,}` make beyond their minimum."""

_COUNT: Final = re.compile(r"\{([0-9]{1,4})(,([0-9]{1,4})?)?\}")
_FLAGS: Final = re.compile(r"\?(?:P?<\w+>|([imsU]*)(?:-([imsU]*))?(:|\)))")
_CODE: Final = re.compile(r"x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))|([0-7]{1,3})")
_LITERAL: Final = re.compile(r"\\Q(.*?)(?:\\E|\Z)|\\.", re.DOTALL)
_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_POSITIONS: Final = frozenset("AzbB")


def sample(pattern: str, env: Env) -> str:
    """Return a text that matches `pattern`, drawn from `env.chance`. Raises EvaluationError or LimitError."""
    regex.compile(pattern)
    make = _Reader(_LITERAL.sub(_spelled_out, pattern)).alternatives()
    making = _Making(env.chance)
    make(making)
    return "".join(making.built)


def _spelled_out(found: re.Match[str]) -> str:
    r"""Return literal text between `\Q` and `\E` as one escape per character, and other escapes as they are."""
    if found[1] is None:
        return found.group()
    return "".join(f"\\x{{{ord(char):x}}}" for char in found[1])


class _Making:
    """A text being made; counts what is made so that nested repetition stays bounded."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.built: list[str] = []
        self._steps = 0

    def step(self) -> None:
        self._steps += 1
        if self._steps > MAX_LENGTH:
            raise LimitError(f"the random text is longer than {MAX_LENGTH} characters")


class _Reader:
    """One walk over a pattern; `at` is the position of the next character."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.fold = False
        self._nesting = 0

    def alternatives(self) -> Maker:
        """Read alternatives up to a closing bracket or the end."""
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise LimitError(f"the regular expression nests deeper than {MAX_NESTING} levels")
        fold = self.fold
        choices = [self.sequence()]
        while self.take("|"):
            choices.append(self.sequence())
        self.fold = fold
        self._nesting -= 1
        return _one_of(choices)

    def sequence(self) -> Maker:
        makers: list[Maker] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            makers.append(self.repeated(self.atom()))
        return _each(makers)

    def atom(self) -> Maker:
        char = self.next()
        if char == "(":
            return self.group()
        if char == "[":
            return self.characters(self.bracketed())
        if char == "\\":
            return self.escape()
        if char == ".":
            return _one_character(ANY)
        if char in "^$":
            return _nothing
        return self.characters([(ord(char), ord(char))])

    def group(self) -> Maker:
        fold = self.fold
        flags = _FLAGS.match(self.text, self.at)
        if flags:
            self.at = flags.end()
            if flags[3]:
                self.fold = ("i" in flags[1] or fold) and "i" not in (flags[2] or "")
            if flags[3] == ")":
                return _nothing
        make = self.alternatives()
        self.take(")")
        self.fold = fold
        return make

    def escape(self) -> Maker:
        char = self.text[self.at : self.at + 1]
        if char in _POSITIONS or char == "E":
            self.at += 1
            return _nothing
        return self.characters(self.escaped())

    def escaped(self) -> list[tuple[int, int]]:
        """Read what follows a backslash, inside or outside of brackets, as the set of its characters."""
        found = escaped_set(self.text, self.at)
        if found is not None:
            ranges, self.at = found
            return ranges
        code = _CODE.match(self.text, self.at)
        if code:
            self.at = code.end()
            number = int(code[3], 8) if code[3] else int(code[1] or code[2], 16)
            return [(number, number)]
        char = self.next()
        char = _CONTROLS.get(char, char)
        return [(ord(char), ord(char))]

    def bracketed(self) -> list[tuple[int, int]]:
        negative = self.take("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self.text[self.at : self.at + 1] not in ("]", ""):
            first = False
            ranges += self.member()
        self.take("]")
        if self.fold:
            ranges = folded(ranges)
        return negated(ranges) if negative else ranges

    def member(self) -> list[tuple[int, int]]:
        named = named_set(self.text, self.at)
        if named is not None:
            ranges, self.at = named
            return ranges
        low = self.bound()
        following = self.text[self.at : self.at + 2]
        if len(low) != 1 or following[:1] != "-" or following[1:] in ("]", ""):
            return low
        self.at += 1
        high = self.bound()
        return [(low[0][0], high[-1][1])]

    def bound(self) -> list[tuple[int, int]]:
        char = self.next()
        return self.escaped() if char == "\\" else [(ord(char), ord(char))]

    def repeated(self, make: Maker) -> Maker:
        while True:
            bounds = self.repetition()
            if bounds is None:
                return make
            self.take("?")
            make = _repeat(make, *bounds)

    def repetition(self) -> tuple[int, int] | None:
        simple = {"*": (0, OPEN_ENDED), "+": (1, OPEN_ENDED + 1), "?": (0, 1)}
        char = self.text[self.at : self.at + 1]
        if char in simple:
            self.at += 1
            return simple[char]
        counted = _COUNT.match(self.text, self.at)
        if counted is None:
            return None
        self.at = counted.end()
        least = int(counted[1])
        if not counted[2]:
            return least, least
        return least, int(counted[3]) if counted[3] else least + OPEN_ENDED

    def characters(self, ranges: list[tuple[int, int]]) -> Maker:
        return _one_character(folded(ranges) if self.fold else ranges)

    def next(self) -> str:
        self.at += 1
        return self.text[self.at - 1 : self.at] or "\0"

    def take(self, char: str) -> bool:
        if self.text.startswith(char, self.at):
            self.at += 1
            return True
        return False


def _nothing(_making: _Making) -> None:
    return None


def _one_of(choices: list[Maker]) -> Maker:
    if len(choices) == 1:
        return choices[0]

    def make(making: _Making) -> None:
        choices[making.chance.below(len(choices))](making)

    return make


def _each(makers: list[Maker]) -> Maker:
    def make(making: _Making) -> None:
        for each in makers:
            each(making)

    return make


def _repeat(once: Maker, least: int, most: int) -> Maker:
    def make(making: _Making) -> None:
        for _ in range(least + making.chance.below(most - least + 1)):
            making.step()
            once(making)

    return make


def _one_character(ranges: list[tuple[int, int]]) -> Maker:
    size = sum(high - low + 1 for low, high in ranges)

    def make(making: _Making) -> None:
        if size == 0:
            raise EvaluationError("the regular expression has a class without characters")
        making.step()
        place = making.chance.below(size)
        for low, high in ranges:
            if place <= high - low:
                making.built.append(chr(low + place))
                return
            place -= high - low + 1

    return make
