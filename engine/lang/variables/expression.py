"""The expression of a variable: its own text is the policy's, and values of other variables stand in it as data."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from engine.errors import EvaluationError, LimitError
from engine.lang import jmes
from engine.lang.gotext import compact_json

from .splicing import Insert, splice

if TYPE_CHECKING:
    from engine.model.json import Json

    from .braces import Items
    from .scope import Scope

MAX_TEXT = 2 * 1024 * 1024
"""Characters a rendered text may have (Kyverno's default limit of a whole context, row A-57)."""

_EXACT = 1 << 53


class Expression:
    """What stands between `{{` and `}}`, or in a field that holds an expression; compiled ahead where it is constant."""

    __slots__ = ("_pieces", "_query", "text")

    def __init__(self, items: Items, *, starts_path: bool = False) -> None:
        self.text = _words(items)
        self._query: jmes.Query | None = None
        self._pieces: tuple[tuple[str, Expression | None, Insert | None], ...] = ()
        if all(isinstance(item, str) for item in items):
            # one that does not compile fails when it is rendered, as Kyverno's does
            with suppress(jmes.ExpressionError):
                self._query = jmes.compile(self.text)
        else:
            self._pieces = tuple(
                (text, None if braces is None else Expression(braces.items), insert)
                for text, braces, insert in splice(items, starts_path=starts_path)
            )

    def value(self, scope: Scope, path: str, current: str) -> Json:
        """Return the value in `scope`; raises EvaluationError naming `path`, where the variable stands."""
        query = self._query
        if query is not None and not scope.is_delete and self.text != "@":
            try:
                return scope.run(query, self.text)
            except EvaluationError as error:
                raise _unresolved(self.text, path, error) from error
        if not self._pieces:
            return resolve(self.text, scope, path, current)
        return _asked(self.written(scope, path, current), scope, path)

    def written(self, scope: Scope, path: str = "", current: str = "") -> str:
        """Return the text of the expression with values in it; raises EvaluationError for one that cannot stand there."""
        if not self._pieces:
            return self.text
        made = []
        for text, inner, insert in self._pieces:
            if inner is None or insert is None:
                made.append(_meant(text, scope))
                continue
            value = as_float64(inner.value(scope, path, current))
            try:
                made.append(insert(value))
            except EvaluationError as error:
                raise error.reworded(
                    f"failed to resolve {self.text} at path {path}: value of {inner.text}: {error.message}"
                ) from error
        written = "".join(made)
        if len(written) > MAX_TEXT:
            raise too_long(path)
        return written


def _words(items: Items) -> str:
    """Return the policy's own words for an expression."""
    return "".join(
        item if isinstance(item, str) else f"{{{{ {_words(item.items)} }}}}" for item in items
    )


def resolve(expression: str, scope: Scope, path: str, current: str) -> Json:
    """Return the value of one variable's expression; see `Template.render` for `path` and `current`."""
    if expression == "@":
        expression = ("target" if "target" in scope.data else "request.object") + current
    return _asked(_meant(expression, scope), scope, path)


def _meant(expression: str, scope: Scope) -> str:
    """Return what the policy's text means for a DELETE (row V-06)."""
    if scope.is_delete:
        return expression.replace("request.object", "request.oldObject")
    return expression


def _asked(expression: str, scope: Scope, path: str) -> Json:
    try:
        return scope.query(expression)
    except EvaluationError as error:
        raise _unresolved(expression, path, error) from error


def _unresolved(expression: str, path: str, error: EvaluationError) -> EvaluationError:
    return error.reworded(f"failed to resolve {expression} at path {path}: {error.message}")


def as_float64(value: Json) -> Json:
    """Return `value` with integers beyond 2**53 as JSON decoding into float64 leaves them."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and not -_EXACT <= value <= _EXACT:
        try:
            return int(float(value))
        except OverflowError as error:
            raise LimitError("a number is too large") from error
    return value


def as_text(value: Json) -> str:
    """Return how a value stands inside a text: strings as they are, everything else as compact JSON (row V-02)."""
    return value if isinstance(value, str) else compact_json(as_float64(value))


def too_long(path: str) -> LimitError:
    """Return the error for a text that grows beyond `MAX_TEXT`."""
    return LimitError(f"text with variables at path {path} grows beyond {MAX_TEXT} characters")
