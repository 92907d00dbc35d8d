"""A field to type into that may be filled with what an object holds: it keeps the value, and draws nothing but characters."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Input

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
