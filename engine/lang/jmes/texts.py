"""Functions on texts: comparing, replacing, cutting (rows F-01 and F-03)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.lang.work import charge

from .signature import Table, fail
from .values import GoInt, as_float, check_length, spend

if TYPE_CHECKING:
    from .errors import Env

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
    size = as_float(value)
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
