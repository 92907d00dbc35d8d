"""What draws its lines itself, in the colours that the theme has for roles: the base of lanes, charts and maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.segment import Segment
    from rich.style import Style

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
