"""Semantic versions and ranges, in the syntax and with the error texts of the Go library blang/semver.

`semver_compare` of policies takes ranges of that library (row F-08), with its habits: `x` wildcards are rewritten to
comparisons, and a range part of one character is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.errors import EvaluationError
from engine.lang.lazy_regex import regex
from engine.record import record

from .goquote import quote

MAX_RANGE: Final = 10_000
_MAX_NUMBER: Final = 2**64
_NUMBER_DIGITS: Final = 20
_PART: Final = regex(r"[0-9]*")
_IDENTIFIER: Final = regex(r"[0-9A-Za-z-]*")
_DIGIT: Final = regex(r"\d")
_NAMES: Final = ("Major", "Minor", "Patch")


@record
class Version:
    """A version; build metadata is checked and then ignored, as it has no order."""

    major: int = 0
    minor: int = 0
    patch: int = 0
    prerelease: tuple[int | str, ...] = ()

    def order(self) -> tuple[object, ...]:
        """Return a key that sorts as semver.org section 11 says."""
        rest = [
            (0, part, "") if isinstance(part, int) else (1, 0, part) for part in self.prerelease
        ]
        return (self.major, self.minor, self.patch, not self.prerelease, rest)


def parse(text: str) -> Version:
    """Return the version in `text`. Raises EvaluationError with the Go library's text."""
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != len(_NAMES):
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], 0), _number(parts[1], 1)
    patch, plus, build = parts[2].partition("+")
    patch, dash, prerelease = patch.partition("-")
    version = Version(
        major,
        minor,
        _number(patch, 2),
        tuple(_prerelease(part) for part in prerelease.split(".")) if dash else (),
    )
    if plus:
        _check_build(build)
    return version


def parse_range(text: str) -> Callable[[Version], bool]:
    """Return the test that a range such as `>=1.2.0 <2.0.0 || 3.x` makes. Raises EvaluationError."""
    if len(text) > MAX_RANGE:
        raise EvaluationError(f"the range is longer than {MAX_RANGE} characters")
    parts = [
        [part for piece in pieces for part in _expanded(piece)]
        for pieces in _alternatives(_pieces(text))
    ]
    alternatives = [_comparisons(one) for one in parts]
    return lambda version: any(all(test(version) for test in tests) for tests in alternatives)


def _number(text: str, place: int) -> int:
    name = _NAMES[place]
    if not _PART.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in {name.lower()} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name} number must not contain leading zeroes {quote(text)}")
    return _uint(text)


def _uint(text: str) -> int:
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > _NUMBER_DIGITS or int(text) >= _MAX_NUMBER:
        raise EvaluationError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> int | str:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if _PART.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise EvaluationError(
                f"Numeric PreRelease version must not contain leading zeroes {quote(text)}"
            )
        return _uint(text)
    if not _IDENTIFIER.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in prerelease {quote(text)}")
    return text


def _check_build(text: str) -> None:
    for part in text.split("."):
        if not part:
            raise EvaluationError("Build meta data is empty")
        if not _IDENTIFIER.fullmatch(part):
            raise EvaluationError(f"Invalid character(s) found in build meta data {quote(part)}")


def _pieces(text: str) -> list[str]:
    """Split at spaces that do not follow an operator; pieces of one character are lost."""
    pieces: list[str] = []
    start = 0
    before = ""
    for index, char in enumerate(text):
        if char == " " and before not in (">", "<", "="):
            if start < index - 1:
                pieces.append(text[start:index])
            start = index + 1
        elif char != " ":
            before = char
    if start < len(text) - 1:
        pieces.append(text[start:])
    return [piece.replace(" ", "") for piece in pieces]


def _alternatives(pieces: list[str]) -> list[list[str]]:
    alternatives: list[list[str]] = [[]]
    for index, piece in enumerate(pieces):
        if piece != "||":
            alternatives[-1].append(piece)
            continue
        if index == 0:
            raise EvaluationError("First element in range is '||'")
        alternatives.append([])
    if not alternatives[-1]:
        raise EvaluationError("Last element in range is '||'")
    return alternatives


def _split(piece: str) -> tuple[str, str]:
    found = _DIGIT.search(piece)
    if found is None:
        raise EvaluationError(f"Could not get version from string: {quote(piece)}")
    return piece[: found.start()].strip(), piece[found.start() :]


def _expanded(piece: str) -> list[str]:
    """Rewrite a wildcard part to comparisons of full versions."""
    if "x" not in piece:
        return [piece]
    operator, version = _split(piece)
    flat = _without_wildcards(version)
    if operator in (">=", "<"):
        return [operator + flat]
    following = _following(version, flat)
    if operator in (">", "<="):
        return [(">=" if operator == ">" else "<") + following]
    if operator in ("", "=", "=="):
        return [f">={flat}", f"<{following}"]
    if operator in ("!", "!="):
        return [f"<{flat}", f">={following}"]
    return [flat]


def _without_wildcards(version: str) -> str:
    flat = version.replace(".x.x", ".x", 1).replace(".x", ".0", 1)
    return f"{flat}.0" if flat.count(".") == 1 else flat


def _following(version: str, flat: str) -> str:
    """Return the first version after those that the wildcard covers, or nothing where it is no wildcard."""
    given = version.split(".")
    if given[-1] != "x" or len(given) not in (2, 3):
        return ""
    parts = flat.split(".")
    place = len(given) - 2
    if not (parts[place].isdecimal() and len(parts[place]) < _NUMBER_DIGITS):
        return ""
    parts[place] = str(int(parts[place]) + 1)
    return ".".join(parts)


def _comparisons(parts: list[str]) -> list[Callable[[Version], bool]]:
    if not parts:
        raise EvaluationError("nothing stands between two '||' of the range")
    return [_comparison(part) for part in parts]


def _comparison(piece: str) -> Callable[[Version], bool]:
    operator, text = _split(piece)
    try:
        return _test(operator, text)
    except EvaluationError as error:
        raise EvaluationError(f"Could not parse Range {quote(piece)}: {error}") from None


def _test(operator: str, text: str) -> Callable[[Version], bool]:
    if operator not in _TESTS:
        raise EvaluationError(
            f"Could not parse comparator {quote(operator)} in {quote(operator + text)}"
        )
    try:
        bound = parse(text).order()
    except EvaluationError as error:
        raise EvaluationError(
            f"Could not parse version {quote(text)} in {quote(operator + text)}: {error}"
        ) from None
    decide = _TESTS[operator]
    return lambda version: decide(version.order(), bound)


_TESTS: Final[dict[str, Callable[[tuple[object, ...], tuple[object, ...]], bool]]] = {
    "": lambda one, other: one == other,
    "=": lambda one, other: one == other,
    "==": lambda one, other: one == other,
    "!": lambda one, other: one != other,
    "!=": lambda one, other: one != other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
}
