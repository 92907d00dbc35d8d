r"""One text with `{{ variables }}`: compiled once, rendered for each object.

Rendering follows Kyverno (rows V-01 to V-07): inner variables are resolved first, results are scanned again until no
variable is left, a text that is one whole variable keeps the type of its value, `{{- x }}` is not scanned again, and
`\\{{` stands for a literal `{{`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.errors import EvaluationError, LimitError
from engine.lang import jmes
from engine.lang.gotext import compact_json

if TYPE_CHECKING:
    from engine.model.json import Json

    from .scope import Scope

VARIABLE = re.compile(r"(?:^|[^\\])(\{\{(?:\{[^{}]*\}|[^{}])*\}\})")
_ESCAPED = re.compile(r"\\\{\{(?:\{[^{}]*\}|[^{}])*\}\}")

MAX_TEXT = 2 * 1024 * 1024
"""Characters a rendered text may have (Kyverno's default limit of a whole context, row A-57)."""

MAX_ROUNDS = 64
"""How often results are scanned again; a variable whose value mentions itself would never end."""

_EXACT = 1 << 53


def has_variables(text: str) -> bool:
    """Return whether rendering can change `text`."""
    return "{{" in text


def expression_of(variable: str) -> str:
    """Return the JMESPath expression inside `{{ … }}` or `{{- … }}`."""
    inner = variable[2:-2]
    return inner.removeprefix("-").strip()


def variables_in(text: str) -> list[str]:
    """Return the innermost `{{ … }}` of `text`, in order."""
    return VARIABLE.findall(text)


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


class Template:
    """A text with at least one `{{`, ready to be rendered."""

    __slots__ = ("_parts", "_queries", "text", "whole")

    def __init__(self, text: str) -> None:
        self.text = text
        found = list(VARIABLE.finditer(text))
        self.whole = found[0].group(1) if found and found[0].group(1) == text else ""
        self._parts = [] if self.whole else _split(text, found)
        self._queries = {part: _query(part) for part, is_variable in self._parts if is_variable}
        if self.whole:
            self._queries[self.whole] = _query(self.whole)

    def render(self, scope: Scope, path: str = "", current: str = "") -> Json:
        """Return the value of this text in `scope`.

        `path` is where the text stands in its document, for messages; `current` is the JMESPath of the object's field
        that `{{ @ }}` means there. Raises EvaluationError with Kyverno's text.
        """
        if self.whole:
            value = self._value(self.whole, scope, path, current)
            return as_float64(value)
        if not self._parts:
            return _render_slowly(self.text, scope, path, current)
        texts = [
            as_text(self._value(part, scope, path, current)) if is_variable else part
            for part, is_variable in self._parts
        ]
        made = "".join(texts)
        if "{{" in made:
            return _render_slowly(self.text, scope, path, current)
        return made

    def _value(self, variable: str, scope: Scope, path: str, current: str) -> Json:
        compiled = self._queries.get(variable)
        expression = expression_of(variable)
        if compiled is None or expression == "@" or scope.is_delete:
            return resolve(expression, scope, path, current)
        try:
            return scope.run(compiled, expression)
        except EvaluationError as error:
            raise _unresolved(expression, path, error) from error


def _query(variable: str) -> jmes.Query | None:
    """Compile an expression ahead of time; one that does not compile fails when it is rendered, as Kyverno's does."""
    try:
        return jmes.compile(expression_of(variable))
    except jmes.ExpressionError:
        return None


def _split(text: str, found: list[re.Match[str]]) -> list[tuple[str, bool]]:
    """Cut a text into literals and variables; an empty list where nesting or escapes need the careful way."""
    parts: list[tuple[str, bool]] = []
    end = 0
    for match in found:
        literal, end = text[end : match.start(1)], match.end(1)
        parts += [(literal, False), (match.group(1), True)]
    parts.append((text[end:], False))
    careful = any("{{" in part or "}}" in part for part, is_variable in parts if not is_variable)
    return [] if careful or not found else [part for part in parts if part[0]]


def resolve(expression: str, scope: Scope, path: str, current: str) -> Json:
    """Return the value of one variable's expression; see `Template.render` for `path` and `current`."""
    if expression == "@":
        expression = ("target" if "target" in scope.data else "request.object") + current
    if scope.is_delete:
        expression = expression.replace("request.object", "request.oldObject")
    try:
        return scope.query(expression)
    except EvaluationError as error:
        raise _unresolved(expression, path, error) from error


def _unresolved(expression: str, path: str, error: EvaluationError) -> EvaluationError:
    return error.reworded(f"failed to resolve {expression} at path {path}: {error.message}")


def _render_slowly(text: str, scope: Scope, path: str, current: str) -> Json:
    """Replace variables one by one and scan again until none is left (rows V-01, V-04).

    A text that has become one variable keeps the type of its value, like one that was written so (row V-02).
    """
    for _ in range(MAX_ROUNDS):
        found = [(match.group(0), match.group(1)) for match in VARIABLE.finditer(text)]
        if not found:
            return _unescape(text)
        if found[0][1] == text:
            return as_float64(resolve(expression_of(text), scope, path, current))
        shallow = False
        for whole, variable in found:
            value = resolve(expression_of(variable), scope, path, current)
            prefix = whole[: len(whole) - len(variable)]
            text = text.replace(prefix + variable, prefix + as_text(value), 1)
            if len(text) > MAX_TEXT:
                raise LimitError(
                    f"text with variables at path {path} grows beyond {MAX_TEXT} characters"
                )
            shallow = shallow or variable.startswith("{{-")
        if shallow:
            return _unescape(text)
    raise LimitError(
        f"variables at path {path} are still left after {MAX_ROUNDS} rounds",
        help="does the value of a variable mention the variable itself?",
    )


def _unescape(text: str) -> str:
    for escaped in _ESCAPED.findall(text):
        text = text.replace(escaped, escaped[1:])
    return text
