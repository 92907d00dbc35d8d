"""Templates of generating policies: YAML documents, with `(( EXPR ))` in their values where they are interpolated (row GP-15).

A value that is nothing but a placeholder becomes what its expression gives, whatever that is; inside longer text it becomes
text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError, EvaluationError, PolicyError
from engine.generate.placeholders import MARK, documents_of, is_interpolated, pieces
from engine.lang import gotext
from engine.lang.cel.functions.encodings import plain
from engine.record import record

from .expressions import compile_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from engine.lang.cel import Program
    from engine.model import Block, Json, Object

    from .bindings import Bindings

    Part = str | Program
    Render = Callable[[Bindings], Json]


@record
class Template:
    """The documents of a template, compiled."""

    documents: tuple[Render, ...]

    def render(self, bindings: Bindings) -> Iterator[Object]:
        """Yield the documents with their placeholders replaced; raises EvaluationError."""
        for number, document in enumerate(self.documents, 1):
            try:
                found = document(bindings)
            except EvaluationError as error:
                raise error.reworded(
                    f"failed to render generation template: document {number}: {error.message}"
                ) from error
            if isinstance(found, dict):
                yield found


def compile_template(block: Block, names: Collection[str], *, place: str) -> Template:
    """Compile a template; raises PolicyError for text that is no YAML, or an expression that cannot work."""
    try:
        documents = documents_of(block)
    except EngineError as error:
        raise PolicyError(f"`{place}` cannot be read: {error.message}") from error
    if not documents or not all(isinstance(one, dict) for one in documents):
        raise PolicyError(f"`{place}` must hold objects")
    if not is_interpolated(block):
        return Template(tuple(_constant(one) for one in documents))
    return Template(tuple(_value(one, names, place) for one in documents))


def _constant(value: Json) -> Render:
    return lambda _: value


def _value(value: Json, names: Collection[str], place: str) -> Render:
    if isinstance(value, dict):
        fields = {key: _value(below, names, place) for key, below in value.items()}
        return lambda bindings: {key: below(bindings) for key, below in fields.items()}
    if isinstance(value, list):
        items = [_value(below, names, place) for below in value]
        return lambda bindings: [below(bindings) for below in items]
    if isinstance(value, str) and MARK in value:
        return _text(_parts(value, names, place))
    return _constant(value)


def _text(parts: list[Part]) -> Render:
    if len(parts) == 1:
        only = parts[0]
        return _constant(only) if isinstance(only, str) else lambda bindings: _told(only, bindings)

    def joined(bindings: Bindings) -> str:
        return "".join(
            part if isinstance(part, str) else _as_text(_told(part, bindings)) for part in parts
        )

    return joined


def _told(program: Program, bindings: Bindings) -> Json:
    return plain(bindings.env, bindings.value_of(program))


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else gotext.compact_json(value)


def _parts(text: str, names: Collection[str], place: str) -> list[Part]:
    """Return the pieces of a text, placeholders compiled; raises PolicyError."""
    found: list[Part] = []
    for piece in pieces(text):
        if isinstance(piece, str):
            found.append(piece)
            continue
        if piece.is_open:
            raise PolicyError(f"`{place}` has a placeholder without an end: `{text}`")
        found.append(compile_expression(piece.source, names, place=place, may_mix=True))
    return found
