r"""One text with `{{ variables }}`: compiled once, rendered for each object.

Rendering follows Kyverno (rows V-01 to V-07) but for one thing: only the text itself is ever read as an expression, so
that a value that holds `{{` stays as it is. Inner variables are resolved first, a text that is one whole variable keeps
the type of its value, `{{- x }}` leaves what is around it as text, and `\\{{` stands for a literal `{{`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import LimitError

from .braces import ESCAPED, VARIABLE, cut
from .expression import MAX_TEXT, Expression, as_float64, as_text, resolve, too_long

if TYPE_CHECKING:
    from engine.model.json import Json

    from .scope import Scope

__all__ = [
    "ExpressionText",
    "Template",
    "as_text",
    "expression_of",
    "has_variables",
    "parts_of",
    "variables_in",
]


def has_variables(text: str) -> bool:
    """Return whether rendering can change `text`."""
    return "{{" in text


def variables_in(text: str) -> list[str]:
    """Return the innermost `{{ … }}` of `text`, in order."""
    return VARIABLE.findall(text)


class Template:
    """A text with at least one `{{`, ready to be rendered."""

    __slots__ = ("_fault", "_parts", "_whole", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._fault: LimitError | None = None
        self._parts: list[str | Expression] = []
        try:
            self._parts = parts_of(text)
        except LimitError as error:
            self._fault = error
        whole = self._parts[0] if len(self._parts) == 1 else None
        self._whole = whole if isinstance(whole, Expression) else None

    def render(self, scope: Scope, path: str = "", current: str = "") -> Json:
        """Return the value of this text in `scope`.

        `path` is where the text stands in its document, for messages; `current` is the JMESPath of the object's field
        that `{{ @ }}` means there. Raises EvaluationError with Kyverno's text.
        """
        if scope.rereads:
            return render_and_reread(self.text, scope, path, current)
        if self._whole is not None:
            return as_float64(self._whole.value(scope, path, current))
        if self._fault is not None:
            raise self._fault
        texts = [
            part if isinstance(part, str) else as_text(part.value(scope, path, current))
            for part in self._parts
        ]
        made = "".join(texts)
        if len(made) > MAX_TEXT:
            raise too_long(path)
        return made


def parts_of(text: str) -> list[str | Expression]:
    """Cut a text into literals and variables; raises LimitError for variables that nest too deeply."""
    plain = _plain_parts(text)
    if plain is not None:
        return plain
    parts: list[str | Expression] = []
    literal = ""
    for item in cut(text):
        if isinstance(item, str):
            literal += item
            continue
        if literal:
            parts.append(literal)
        literal = ""
        parts.append(Expression(item.items))
    return [*parts, literal] if literal or not parts else parts


def _plain_parts(text: str) -> list[str | Expression] | None:
    """Cut a text at once; None where nesting or escapes need the careful way."""
    parts: list[str | Expression] = []
    end = 0
    for match in VARIABLE.finditer(text):
        literal = text[end : match.start(1)]
        if "{{" in literal or "}}" in literal:
            return None
        if literal:
            parts.append(literal)
        variable, end = match.group(1), match.end(1)
        parts.append(Expression((expression_of(variable),)))
    literal = text[end:]
    if "{{" in literal or "}}" in literal:
        return None
    return [*parts, literal] if literal or not parts else parts


class ExpressionText:
    """A field that holds an expression, with variables in it or without.

    `starts_path` says that the expression is asked of one value rather than of the whole scope: then a variable's value
    may also name the first field.
    """

    __slots__ = ("_expression", "_fault", "text")

    def __init__(self, text: str, *, starts_path: bool) -> None:
        self.text = text
        self._fault: LimitError | None = None
        self._expression: Expression | None = None
        if not has_variables(text):
            return
        try:
            self._expression = Expression(cut(text), starts_path=starts_path)
        except LimitError as error:
            self._fault = error

    def render(self, scope: Scope) -> str:
        """Return the text of the expression; raises EvaluationError where a value cannot stand at its place."""
        if self._fault is not None:
            raise self._fault
        if self._expression is None:
            return self.text
        if scope.rereads:
            return as_text(render_and_reread(self.text, scope, "", ""))
        return self._expression.written(scope)


# Kyverno's way with values that hold `{{ … }}`: they are read as expressions, too (rows V-01, V-04).
#
# Whoever may write such a value decides what is read and shown. So this happens only where somebody asked for it.

MAX_ROUNDS = 64
"""How often values are read again; a variable whose value mentions itself would never end."""


def expression_of(variable: str) -> str:
    """Return the JMESPath expression inside `{{ … }}` or `{{- … }}`."""
    inner = variable[2:-2]
    return inner.removeprefix("-").strip()


def render_and_reread(text: str, scope: Scope, path: str, current: str) -> Json:
    """Replace variables one by one and read what came of it again until none is left.

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
                raise too_long(path)
            shallow = shallow or variable.startswith("{{-")
        if shallow:
            return _unescape(text)
    raise LimitError(
        f"variables at path {path} are still left after {MAX_ROUNDS} rounds",
        help="does the value of a variable mention the variable itself?",
    )


def _unescape(text: str) -> str:
    for escaped in ESCAPED.findall(text):
        text = text.replace(escaped, escaped[1:])
    return text
