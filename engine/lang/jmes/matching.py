"""Functions that match texts and labels (row F-02)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.lang import gotext, regex, wildcard

from .signature import Table
from .values import as_float, equal, spend

if TYPE_CHECKING:
    from engine.model import Json

    from .errors import Env

table = Table()


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
    try:
        packed: float = struct.unpack("f", struct.pack("f", as_float(value)))[0]
    except OverflowError:
        packed = float("inf") if value > 0 else float("-inf")
    for digits in range(1, 10):
        shown = float(f"{packed:.{digits}g}")
        if shown == packed or _to_single(shown) == packed:
            return gotext.shortest(shown)
    return gotext.shortest(packed)


def _to_single(value: float) -> float:
    try:
        packed: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return float("inf")
    return packed
