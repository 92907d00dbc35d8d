"""Makes a test of rows from a filter's tree, for one listing: names become columns, values what the column holds.

Compiled once, asked for every row: each predicate is a closure over its cell. Regular expressions are RE2's, so that none of
them can hang the console.
"""

from __future__ import annotations

from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Final

from engine.errors import EngineError
from engine.fields import part
from engine.lang import duration, wildcard
from engine.record import record
from kubectl_kpolicy.output.misuse import suggestion
from kubectl_kpolicy.output.rows import SEVERITIES, Cell, Column, Listing, Row, Shape, severity_rank
from kubectl_kpolicy.output.time_format import instant

from . import reading
from .reading import FilterError, Joined, Labels, Negated, Node, Predicate, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime, timedelta


_COMPARE: Final = {">": gt, "<": lt, ">=": ge, "<=": le, "=": eq, ":": eq, "!=": ne}
_STRETCH: Final = 3
"""By how much a fuzzy match may be longer than what was asked for."""

_MOMENTS: Final = (Shape.AGE, Shape.LEFT, Shape.TIME)
_WORDS: Final = (Shape.TEXT, Shape.STATE, Shape.SEVERITY)
_AWAY: Final[Mapping[Shape, Callable[[datetime, datetime], timedelta]]] = {
    Shape.AGE: lambda one, now: now - one,
    Shape.LEFT: lambda one, now: one - now,
    Shape.TIME: lambda one, now: abs(one - now),
}
"""How far an instant is from now: since, until, or for an instant that may lie on either side, whichever it is."""


@record
class Filter:
    """A filter ready to be asked; `text` is how it was written, `asks_for_labels` whether it speaks of labels of the object."""

    text: str
    test: Callable[[Row, datetime], bool]
    asks_for_labels: bool = False

    def keeps(self, row: Row, now: datetime) -> bool:
        """Tell whether a row fits at an instant."""
        return self.test(row, now)


def compile_filter(text: str, listing: Listing) -> Filter:
    """Return the filter for a listing's rows; an empty text keeps all. Raises FilterError."""
    if not text.strip():
        return Filter("", lambda _row, _now: True)
    node = reading.read(text)
    return Filter(text.strip(), _test(node, listing), _asks_for_labels(node))


def required(text: str, listing: Listing) -> dict[str, str]:
    """Return the words that every row which a filter keeps has in some columns, by their ids; raises FilterError.

    Only what is asked for as one whole word in small letters counts: for a server that compares letter by letter.
    """
    if not text.strip():
        return {}
    node = reading.read(text)
    parts = node.parts if isinstance(node, Joined) and node.operator == "and" else (node,)
    found = {}
    for one in parts:
        column = listing.column(one.name) if isinstance(one, Predicate) else None
        if column is None or not isinstance(one, Predicate) or one.operator not in ("=", ":"):
            continue
        is_word = one.value and one.value == one.value.lower() and "," not in one.value
        if column.shape in _WORDS and is_word and not wildcard.has_wildcard(one.value):
            found[column.id] = one.value
    return found


def _asks_for_labels(node: Node) -> bool:
    match node:
        case Joined(parts=parts):
            return any(_asks_for_labels(one) for one in parts)
        case Negated(part=inner):
            return _asks_for_labels(inner)
    return isinstance(node, Labels)


def _test(node: Node, listing: Listing) -> Callable[[Row, datetime], bool]:
    match node:
        case Joined(operator=operator, parts=parts):
            return _joined(operator, [_test(one, listing) for one in parts])
        case Negated(part=inner):
            test = _test(inner, listing)
            return lambda row, now: not test(row, now)
        case Predicate():
            return _predicate(node, listing)
        case Labels():
            return _labels(node)
    return _words(node, listing)


def _joined(
    operator: str, tests: list[Callable[[Row, datetime], bool]]
) -> Callable[[Row, datetime], bool]:
    if operator == "or":
        return lambda row, now: any(test(row, now) for test in tests)
    return lambda row, now: all(test(row, now) for test in tests)


def _words(node: Words, listing: Listing) -> Callable[[Row, datetime], bool]:
    """Return a test whether the text stands in any cell of words."""
    names = tuple(one.id for one in listing.columns if one.shape in _WORDS)
    fits = _text_test(node)
    return lambda row, _now: any(fits(value) for name in names if (value := row.text(name)))


def _text_test(node: Words) -> Callable[[str], bool]:
    if node.style == "regex":
        return _regex(node.text, node.position)
    wanted = node.text.lower()
    if node.style == "fuzzy":
        near = _fuzzy(wanted)
        return lambda text: near(text.lower())
    if wildcard.has_wildcard(wanted):
        pattern = wildcard.compiled(f"*{wanted}*")
        return lambda text: pattern(text.lower())
    return lambda text: wanted in text.lower()


def _fuzzy(wanted: str) -> Callable[[str], bool]:
    """Return a test whether the letters of `wanted` stand in one word in their order, close to each other.

    In a whole message any few letters are found somewhere; so all stand in a stretch without blanks, no longer than `_STRETCH`
    times what was asked for.
    """
    letters = "".join(wanted.split())
    longest = _STRETCH * len(letters)

    def fits(text: str) -> bool:
        return any(
            all(char in rest for char in letters)
            for word in text.split()
            for start in range(len(word) - len(letters) + 1)
            if word.startswith(letters[:1], start) and (rest := iter(word[start : start + longest]))
        )

    return fits


def _regex(text: str, position: int) -> Callable[[str], bool]:
    from engine.lang import regex

    try:
        pattern = regex.compile(f"(?i){text}")
    except EngineError as error:
        raise FilterError(f"`{text}` is not a regular expression: {error.message}", position) from error  # fmt: skip
    return pattern.search


def _labels(node: Labels) -> Callable[[Row, datetime], bool]:
    """Return a test by a label selector, as the API server reads one, on labels of the object."""
    from controllers.kube.paths import parse_labels  # here: few filters speak of labels

    if not node.text.strip():
        raise FilterError("`-l` without a selector", node.position)
    try:
        test = parse_labels(node.text)
    except EngineError as error:
        raise FilterError(error.message, node.position, help='such as `-l app=web,tier!=front` or `-l "app in (web, api)"`') from error  # fmt: skip
    return lambda row, _now: test(
        {key: value for key, value in part(row.object, "metadata", "labels").items() if isinstance(value, str)}
    )  # fmt: skip


def _predicate(node: Predicate, listing: Listing) -> Callable[[Row, datetime], bool]:
    column = listing.column(node.name)
    if column is None:
        names = (name for column in listing.columns for name in (column.id, *column.aliases))
        advice = suggestion(node.name, names)
        raise FilterError(f"there is no column `{node.name}`", node.position, help=advice)
    if node.operator in ("~", "!~"):
        fits = _regex(node.value, node.position)
        wanted = node.operator == "~"
        return lambda row, _now: fits(row.text(column.id)) == wanted
    if column.shape is Shape.SEVERITY and node.operator in (">", "<", ">=", "<="):
        return _severity(node, column)
    if column.shape in _MOMENTS:
        return _moment(node, column)
    if column.shape is Shape.NUMBER:
        return _number(node, column)
    return _text(node, column)


def _severity(node: Predicate, column: Column) -> Callable[[Row, datetime], bool]:
    if node.value.lower() not in SEVERITIES:
        raise FilterError(f"`{node.value}` is not a severity", node.position,
                          help=f"there are {', '.join(filter(None, SEVERITIES))}")  # fmt: skip
    compare, wanted = _COMPARE[node.operator], severity_rank(node.value)
    return lambda row, _now: compare(severity_rank(row.cells.get(column.id)), wanted)


def _moment(node: Predicate, column: Column) -> Callable[[Row, datetime], bool]:
    """Return a test of an instant: against a length of time from now, an instant, or nothing (`left=""`)."""
    if not node.value and node.operator in ("=", ":", "!="):
        wanted = node.operator != "!="
        return lambda row, _now: (row.moment(column.id) is None) == wanted
    if node.operator not in _COMPARE:
        raise FilterError(f"`{node.operator}` does not fit `{node.name}`", node.position)
    if not node.value:
        raise FilterError(f"`{node.name}{node.operator}` lacks a length of time or an instant", node.position)  # fmt: skip
    compare = _COMPARE[node.operator]
    length, at = duration.length(node.value.lower()), instant(node.value)
    if at is not None:
        return lambda row, _now: _holds(row.moment(column.id), lambda one: compare(one.timestamp(), at.timestamp()))  # fmt: skip
    if length is None:
        raise FilterError(f"`{node.value}` is neither a length of time nor an instant", node.position,
                          help="such as `age<2h`, `left<30m` or `age>2026-01-31T12:00:00Z`")  # fmt: skip
    away = _AWAY[column.shape]
    return lambda row, now: _holds(row.moment(column.id), lambda one: _lasts(away(one, now), length, compare))  # fmt: skip


def _lasts(distance: timedelta, length: timedelta, compare: Callable[[float, float], bool]) -> bool:
    return compare(distance.total_seconds(), length.total_seconds())


def _holds(at: datetime | None, test: Callable[[datetime], bool]) -> bool:
    return at is not None and test(at)


def _number(node: Predicate, column: Column) -> Callable[[Row, datetime], bool]:
    try:
        wanted = float(node.value)
    except ValueError:
        raise FilterError(f"`{node.value}` is not a number", node.position) from None
    compare = _COMPARE[node.operator]
    return lambda row, _now: compare(_as_number(row.cells.get(column.id)), wanted)


def _as_number(value: Cell) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _text(node: Predicate, column: Column) -> Callable[[Row, datetime], bool]:
    """Return a test of a word: equal to one of several, each with wildcards, without regard to case."""
    if node.operator in (">", "<", ">=", "<="):
        raise FilterError(f"`{node.operator}` does not fit `{node.name}`, which is text", node.position,
                          help=f"try `{node.name}={node.value}` or `{node.name}~{node.value}`")  # fmt: skip
    patterns = [wildcard.compiled(one.lower()) for one in node.value.split(",")]
    wanted = node.operator != "!="
    return lambda row, _now: any(fits(row.text(column.id).lower()) for fits in patterns) == wanted
