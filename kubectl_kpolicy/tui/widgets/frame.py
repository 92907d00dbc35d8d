"""The frame of every screen: who looks at what (header), where one is (crumbs), what can be pressed (footer)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text
from textual.widgets import Static

from engine.record import record
from kubectl_kpolicy.output.cells import plain

if TYPE_CHECKING:
    from collections.abc import Sequence


@record
class Part:
    """One part of the header: text, colour role, and how early it goes when there is no room (0: never)."""

    text: str
    role: str = ""
    goes: int = 0


class Header(Static):
    """One line: program, context, namespace, identity, mode, health of the watch, what ends next, what waits."""

    def show(self, parts: Sequence[Part], *, is_production: bool = False) -> None:
        """Draw the parts that there is room for."""
        self.set_class(is_production, "-production")
        self.update(fitted(parts, self.size.width or 80))


def fitted(parts: Sequence[Part], width: int) -> Text:
    """Return the parts in their order, those that go first left out until the rest fits."""
    kept = [part for part in parts if part.text]
    while _width(kept) > width and any(part.goes for part in kept):
        first = max(kept, key=lambda part: part.goes)
        kept.remove(first)
    text = Text(no_wrap=True, overflow="ellipsis", end="")
    for number, part in enumerate(kept):
        text.append(" " if number == 0 else " ▏", "dim" if number else "")
        text.append(plain(part.text), part.role)
    return text


def _width(parts: Sequence[Part]) -> int:
    return sum(cell_len(part.text) + 2 for part in parts)


class Crumbs(Static):
    """One line: the way here, and at its end what was said last."""

    def show(self, way: Sequence[str], said: str = "", role: str = "") -> None:
        """Draw the way and a sentence to the right of it."""
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        kept = [plain(one) for one in way if one]
        room = (self.size.width or 80) - (cell_len(plain(said)) + 4 if said else 0)
        while len(kept) > 1 and cell_len(" › ".join(kept)) + 1 > room:
            kept.pop()
        text.append(" " + " › ".join(kept))
        if said:
            text.append("   ")
            text.append(plain(said), role)
        self.update(text)


class Footer(Static):
    """One line: at most six keys for the row under the cursor, and the palette."""

    MOST = 6

    def show(self, keys: Sequence[tuple[str, str]], marked: int = 0) -> None:
        """Draw keys with their words."""
        end = Text(" ^p Palette ", "dim")
        room = (self.size.width or 80) - end.cell_len
        kept = list(keys[: self.MOST])
        while kept and _keys(kept, marked).cell_len > room:
            kept.pop()
        text = _keys(kept, marked)
        text.append(" " * max(room - text.cell_len, 0))
        text.append_text(end)
        self.update(text)


def _keys(keys: Sequence[tuple[str, str]], marked: int) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis", end="")
    for key, word in keys:
        text.append(f" {key_name(key)}", "bold")
        text.append(f" {word} ")
    if marked:
        text.append(f" {marked} marked ", "reverse")
    return text


def key_name(key: str) -> str:
    """Return a key as people write it."""
    names = {"escape": "esc", "backslash": "\\", "pagedown": "pgdn", "pageup": "pgup", "down": "↓", "up": "↑", "left": "←", "right": "→"}  # fmt: skip
    if key.startswith("ctrl+"):
        rest = key.removeprefix("ctrl+")
        return f"^{names.get(rest, rest)}"
    return names.get(key, key)
