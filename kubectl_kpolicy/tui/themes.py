"""Colours: dark and light, a pair for eyes that do not tell red from green, well-known palettes, high contrast, the terminal's own.

A state is never told by colour alone (`output.marks`); colours only make it quicker to find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from textual.filter import LineFilter
from textual.theme import Theme

if TYPE_CHECKING:
    from textual.color import Color

_PALETTES = {
    "dark": "7aa2f7 7dcfff d5daf0 12131a 181a23 232635 8fd694 e6b450 ff6c7a",
    "light": "2450b2 0b6e99 1c1e26 fbfbf8 f3f3ee e4e4dc 1d6b2f 8a5a00 b3122a",
    "cvd-dark": "56b4e9 56b4e9 e8e8e8 101216 16191f 242a33 56b4e9 f0e442 ff9f1c",
    "cvd-light": "0072b2 0072b2 17181c fcfcfa f2f2ee e2e2da 0072b2 7a5c00 b34700",
    "catppuccin": "89b4fa 94e2d5 cdd6f4 1e1e2e 24243a 313244 a6e3a1 f9e2af f38ba8",
    "gruvbox": "83a598 d3869b ebdbb2 1d2021 282828 3c3836 b8bb26 fabd2f fb6a55",
    "nord": "88c0d0 c3aad8 e5e9f0 2e3440 343b49 434c5e a3be8c ebcb8b ec9aa3",
    "high-contrast": "ffffff 00ffff ffffff 000000 000000 303030 00ff66 ffff00 ff8080",
}
_COLORS = ("primary", "accent", "foreground", "background", "surface", "panel", "success", "warning", "error")  # fmt: skip
"""What the colours of a palette are for, in their order."""


def _theme(word: str, palette: str) -> Theme:
    """Return the theme of a palette; the second colour is `secondary` as well."""
    colors: dict[str, Any] = dict(zip(_COLORS, (f"#{one}" for one in palette.split()), strict=True))
    return Theme(f"kpolicy-{word}", secondary=colors["accent"], dark="light" not in word, **colors)


THEMES = tuple(_theme(word, palette) for word, palette in _PALETTES.items())
SHORT = {**{word: f"kpolicy-{word}" for word in _PALETTES}, "ansi": "ansi-dark"}
"""The names by which people call them, in `--theme`, in the configuration and in the picker."""


def theme_name(word: str) -> str:
    """Return the full name of a theme by the name that people call it; raises KeyError for any other word."""
    return SHORT[word]


_IN_ASCII = str.maketrans(
    {
        **dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼┏┓┗┛╋╔╗╚╝╠╣", "+"), **dict.fromkeys("─╌┄▁▔", "-"), **dict.fromkeys("━═▄▀", "="),
        **dict.fromkeys("│┃║▏▎▍▌▐▊▕┆", "|"), **dict(zip("▂▃▄▅▆▇█", ".-=+*#@", strict=True)), **dict(zip("░▒▓", ":+%", strict=True)),
        "↑": "^", "↓": "v", "→": ">", "←": "<", "›": ">", "‹": "<", "»": "*", "▶": ">", "▼": "v", "…": "~", "·": ".", "•": "*", "●": "o", "🔎": "? ",
    }
)  # fmt: skip


class AsciiLines(LineFilter):
    """Draws borders, bars and arrows in ASCII, for terminals and fonts that have no others; what objects hold stays as it is."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - the library's interface
        """Return a line with other letters of the same width."""
        return [
            Segment(text.translate(_IN_ASCII), style, control) for text, style, control in segments
        ]
