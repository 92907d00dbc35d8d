"""Kyverno's way with values that hold `{{ … }}`: they are read as expressions, too (rows V-01, V-04).

Whoever may write such a value decides what is read and shown. So this happens only where somebody asked for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import LimitError

from .braces import ESCAPED, VARIABLE
from .expression import MAX_TEXT, as_float64, as_text, resolve, too_long

if TYPE_CHECKING:
    from engine.model.json import Json

    from .scope import Scope


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
