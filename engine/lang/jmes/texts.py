"""Functions on texts: comparing, replacing, cutting, matching texts and labels (rows F-01 to F-03)."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError
from engine.lang import gotext, regex, wildcard
from engine.lang.work import charge

from .signature import Table, fail
from .values import Env, GoInt, check_length, equal, spend

if TYPE_CHECKING:
    from engine.model import Json


table = Table()

_HIGHEST: Final = 2.0**63


@table.function(
    "compare(string, string) number",
    "-1, 0 or 1 as the first text comes before, with or after the second",
)
def compare(_env: Env, one: str, other: str) -> GoInt:
    """Compare by code point. The result is no JMESPath number (row V-21)."""
    return GoInt((one > other) - (one < other))


@table.function(
    "equal_fold(string, string) boolean", "whether two texts are equal but for letter case"
)
def equal_fold(_env: Env, one: str, other: str) -> bool:
    """Compare under Unicode simple case folding: characters one by one."""
    charge(len(one) * 150)
    return len(one) == len(other) and all(
        left == right or _folded(left) == _folded(right)
        for left, right in zip(one, other, strict=True)
    )


@table.function(
    "replace(string, string, string, number) string",
    "the text with up to n occurrences replaced; all if n is negative",
)
def replace(env: Env, text: str, old: str, new: str, count: float) -> str:
    """Replace from the left; the count is cut to a whole number."""
    return _replaced(env, text, old, new, _as_int(count))


@table.function(
    "replace_all(string, string, string) string", "the text with all occurrences replaced"
)
def replace_all(env: Env, text: str, old: str, new: str) -> str:
    """Replace everywhere."""
    return _replaced(env, text, old, new, -1)


@table.function("split(string, string) array", "the parts of the text between the separators")
def split(env: Env, text: str, separator: str) -> list[str]:
    """Split; an empty separator splits into characters."""
    charge(len(text) * 30)
    spend(env, text.count(separator))
    return text.split(separator) if separator else list(text)


@table.function("to_upper(string) string", "the text in capitals")
def to_upper(_env: Env, text: str) -> str:
    """Map character by character, as Go: a letter whose capital is several characters stays."""
    charge(len(text) * 120)
    return text.upper() if text.isascii() else "".join(map(_upper, text))


@table.function("to_lower(string) string", "the text in small letters")
def to_lower(_env: Env, text: str) -> str:
    """Map character by character, as Go."""
    charge(len(text) * 120)
    return text.lower() if text.isascii() else "".join(map(_lower, text))


@table.function("trim(string, string) string", "the text without the given characters at both ends")
def trim(_env: Env, text: str, characters: str) -> str:
    """Cut characters of a set off both ends."""
    return text.strip(characters) if characters else text


@table.function("trim_prefix(string, string) string", "the text without the given start")
def trim_prefix(_env: Env, text: str, prefix: str) -> str:
    """Cut a prefix off, where it is there."""
    return text.removeprefix(prefix)


@table.function("truncate(string, number) string", "the first n characters of the text")
def truncate(_env: Env, text: str, length: float) -> str:
    """Cut to a number of characters; negative numbers count as zero."""
    return text[: max(0, _as_int(length))]


@table.function("to_boolean(string) boolean", "the boolean that the text names")
def to_boolean(_env: Env, text: str) -> bool:
    """Read `true` or `false` in any letter case. Raises EvaluationError for anything else."""
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise fail(
            "to_boolean", f"lowercase argument must be 'true' or 'false' (provided: '{text}')"
        )
    return lowered == "true"


def _replaced(env: Env, text: str, old: str, new: str, count: int) -> str:
    occurrences = text.count(old)
    if 0 <= count < occurrences:
        occurrences = count
    spend(env, occurrences)
    check_length(len(text) + occurrences * max(0, len(new) - len(old)))
    return text.replace(old, new, occurrences)


def _as_int(value: float) -> int:
    """Cut to a whole number as Go does on amd64: what does not fit becomes the lowest integer."""
    size = gotext.as_float(value)
    return int(size) if -_HIGHEST <= size < _HIGHEST else -int(_HIGHEST)


def _upper(char: str) -> str:
    for mapped in (char.upper(), char.title()):
        if len(mapped) == 1:
            return mapped
    return char


def _lower(char: str) -> str:
    if char == "İ":
        return "i"
    mapped = char.lower()
    return mapped if len(mapped) == 1 else char


def _folded(char: str) -> str:
    if char in "İı":
        return char
    if char == "ẞ":
        return "ß"
    folded = char.casefold()
    return folded if len(folded) == 1 else _lower(char)


@table.function(
    "regex_match(string, string|number) boolean",
    "whether the regular expression matches in the text",
)
def regex_match(env: Env, pattern: str, text: str | float) -> bool:
    """Search for an RE2 expression. Raises EvaluationError with Go's text for a wrong one."""
    searched = _as_text(text)
    spend(env, len(searched) >> 6)
    return regex.compile(pattern).search(searched)


@table.function(
    "regex_replace_all(string, string|number, string|number) string",
    "the text with all matches replaced, $1 being groups",
)
def regex_replace_all(env: Env, pattern: str, text: str | float, template: str | float) -> str:
    """Replace matches; `$1` and `${name}` stand for groups."""
    compiled = _compiled("regex_replace_all", pattern)
    searched = _as_text(text)
    spend(env, len(searched) >> 3)
    return compiled.replace(searched, _as_text(template))


@table.function(
    "regex_replace_all_literal(string, string|number, string|number) string",
    "the text with all matches replaced by the text as it stands",
)
def regex_replace_all_literal(
    env: Env, pattern: str, text: str | float, replacement: str | float
) -> str:
    """Replace matches; `$` has no meaning in the replacement."""
    compiled = _compiled("regex_replace_all_literal", pattern)
    searched = _as_text(text)
    spend(env, len(searched) >> 3)
    return compiled.replace_literal(searched, _as_text(replacement))


@table.function(
    "pattern_match(string, string|number) boolean", "whether the text fits the wildcard pattern"
)
def pattern_match(env: Env, pattern: str, text: str | float) -> bool:
    """Match the whole text against `*` and `?`."""
    compared = _as_text(text)
    spend(env, len(compared) >> 6)
    return wildcard.match(pattern, compared)


@table.function(
    "label_match(object, object) boolean", "whether the second object has every pair of the first"
)
def label_match(env: Env, wanted: dict[str, Json], labels: dict[str, Json]) -> bool:
    """Compare pairs by equality, without wildcards."""
    spend(env, len(wanted))
    return all(key in labels and equal(value, labels[key], env) for key, value in wanted.items())


def _compiled(name: str, pattern: str) -> regex.Pattern:
    try:
        return regex.compile(pattern)
    except EvaluationError as error:
        raise EvaluationError(f"JMESPath function '{name}': {error}") from None


def _as_text(value: str | float) -> str:
    """Return a text; numbers as upstream writes them here: plain digits of a 32-bit float."""
    return value if isinstance(value, str) else single(value)


def single(value: float) -> str:
    """Return the shortest digits that tell a number from its neighbours among 32-bit floats, never an exponent."""
    packed = _to_single(gotext.as_float(value))
    for digits in range(1, 10):
        shown = float(f"{packed:.{digits}g}")
        if shown == packed or _to_single(shown) == packed:
            return gotext.shortest(shown)
    return gotext.shortest(packed)


def _to_single(value: float) -> float:
    try:
        packed: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return packed
