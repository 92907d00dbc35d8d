"""Data in which nothing can steer a terminal: what JSON and YAML may escape is escaped always, the rest where a person looks.

Objects hold what others wrote. Control characters, marks of writing direction and characters without width are written as
escapes that mean the same to every reader of JSON or YAML; formats without escapes stay exact for programs, and are made visible
only on a terminal.
"""

from __future__ import annotations

from typing import TextIO

from engine.lang.unseen import unseen


def escaped(text: str) -> str:
    """Return JSON, or a double quoted scalar of its kind, with an escape for everything unseen; it means the same."""
    if text.isascii() and "\x7f" not in text:
        return text
    return unseen().sub(lambda found: _units(found[0]), text)


def _units(char: str) -> str:
    """Return a character as one escape, or as two beyond the basic plane."""
    data = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at]:02x}{data[at + 1]:02x}" for at in range(0, len(data), 2))


def shown(text: str, out: TextIO) -> str:
    """Return text that has no escapes of its own, made visible where a stream is a terminal, exact elsewhere."""
    return unseen().sub(lambda found: _units(found[0]), text) if out.isatty() else text
