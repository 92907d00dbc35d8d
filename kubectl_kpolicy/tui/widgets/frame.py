"""The frame of every screen: who looks at what (header), where one is (crumbs), what can be pressed (footer)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from engine.record import record
from kubectl_kpolicy.output.cells import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.segment import Segment
    from rich.style import Style
    from textual import events
    from textual.visual import VisualType


@record
class Part:
    """One part of the header: text, colour role, how early it goes when there is no room (0: never), and what a click does.

    `door` is the id of an action, or a screen.
    """

    text: str
    role: str = ""
    goes: int = 0
    door: str = ""


class SteadyText(Static):
    """A text that is laid out and drawn again only when it is another one: a cluster that speaks each second changes few."""

    _drawn: VisualType | None = None

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show a text."""
        if content != self._drawn:
            self._drawn = content
            super().update(content, layout=layout)


class Header(SteadyText):
    """One line: program, context, namespace, identity, mode, health of the watch, what ends next, what waits."""

    def show(self, parts: Sequence[Part], *, color: str = "") -> None:
        """Draw the parts that there is room for, on the colour of the context where it has one."""
        self.parts = kept(parts, self.size.width or 80)
        self.set_class(bool(color), "-colored")
        if color:
            self.styles.background = color
        self.update(fitted(parts, self.size.width or 80), layout=False)

    parts: Sequence[Part] = ()
    """What is drawn now."""

    def place_of(self, door: str) -> int | None:
        """Return the cell at which the part that is a door begins; None where it is not drawn."""
        left = 1
        for part in self.parts:
            if part.door == door:
                return left
            left += cell_len(plain(part.text)) + 2
        return None

    def door_at(self, x: int) -> str:
        """Return where the part at a cell leads, empty where it leads nowhere."""
        left = 0
        for part in self.parts:
            right = left + cell_len(plain(part.text)) + 2
            if left <= x < right:
                return part.door
            left = right
        return ""

    class Opened(Message):
        """Somebody clicked a part that leads somewhere."""

        def __init__(self, door: str) -> None:
            super().__init__()
            self.door = door

    def on_click(self, event: events.Click) -> None:
        """Tell of the door that was clicked."""
        door = self.door_at(event.x)
        if door:
            self.post_message(self.Opened(door))


def kept(parts: Sequence[Part], width: int) -> list[Part]:
    """Return the parts in their order, those that go first left out until the rest fits."""
    found = [part for part in parts if part.text]
    while _width(found) > width and any(part.goes for part in found):
        found.remove(max(found, key=lambda part: part.goes))
    return found


def fitted(parts: Sequence[Part], width: int) -> Text:
    """Return the parts that there is room for as one line."""
    text = Text(no_wrap=True, overflow="ellipsis", end="")
    for number, part in enumerate(kept(parts, width)):
        text.append(" " if number == 0 else " ▏", "dim" if number else "")
        text.append(plain(part.text), part.role)
    return text


def _width(parts: Sequence[Part]) -> int:
    return sum(cell_len(part.text) + 2 for part in parts)


class Crumbs(SteadyText):
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
        self.update(text, layout=False)


class Footer(SteadyText):
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
        self.update(text, layout=False)


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


_UNSEEN = "\N{REPLACEMENT CHARACTER}"


class Entry(Input):
    """Textual's field draws its value as it is, control characters included; this one draws a sign in place of each of them."""

    def suggest(self, value: str) -> None:
        """Show behind the cursor how the value may go on, until it changes; the arrow to the right takes it."""
        self._suggestion = value

    @property
    def _value(self) -> Text:
        """Return what is drawn, one character for each of the value, so that the cursor stays where it belongs."""
        if self.password:
            return Text("•" * len(self.value), no_wrap=True, overflow="ignore", end="")
        shown = "".join(char if char.isprintable() else _UNSEEN for char in self.value)
        return Text(shown, no_wrap=True, overflow="ignore", end="")


ROLES = ("error", "warning", "success", "accent", "muted", "head", "cursor")


class Painted(Widget):
    """A widget of whole lines: subclasses say what stands in them."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"role--{role}" for role in ROLES}

    def __init__(self, *, name: str = "") -> None:
        super().__init__(id=name or None)
        self._styles_by_role: dict[str, Style] = {}

    def notify_style_update(self) -> None:
        """Forget colours when the theme changes."""
        self._styles_by_role.clear()
        super().notify_style_update()

    def style_of(self, role: str, *, at_cursor: bool = False) -> Style:
        """Return the style of a role on the background there is; that of plain text for a role that is none."""
        base = self.rich_style
        if at_cursor:
            base += self._part("cursor")
        return base + self._part(role) if role in ROLES else base

    def _part(self, role: str) -> Style:
        found = self._styles_by_role.get(role)
        if found is None:
            found = self.get_component_rich_style(f"role--{role}", partial=True)
            self._styles_by_role[role] = found
        return found

    def line_at(self, y: int) -> Sequence[Segment]:
        """Return what stands in a line."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen."""
        strip = Strip(self.line_at(y))
        return strip.adjust_cell_length(self.size.width, self.rich_style)
