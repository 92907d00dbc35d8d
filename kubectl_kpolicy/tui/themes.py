"""Colours: dark and light, a pair for eyes that do not tell red from green, well-known palettes, high contrast, the terminal's own.

A state is never told by colour alone (`output.marks`); colours only make it quicker to find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.filter import LineFilter
from textual.theme import Theme

if TYPE_CHECKING:
    from textual.color import Color

DARK = Theme(
    "kpolicy-dark", primary="#7aa2f7", secondary="#7dcfff", accent="#7dcfff", foreground="#d5daf0", background="#12131a",
    surface="#181a23", panel="#232635", success="#8fd694", warning="#e6b450", error="#ff6c7a", dark=True,
)  # fmt: skip
LIGHT = Theme(
    "kpolicy-light", primary="#2450b2", secondary="#0b6e99", accent="#0b6e99", foreground="#1c1e26", background="#fbfbf8",
    surface="#f3f3ee", panel="#e4e4dc", success="#1d6b2f", warning="#8a5a00", error="#b3122a", dark=False,
)  # fmt: skip
BLIND_DARK = Theme(
    "kpolicy-cvd-dark", primary="#56b4e9", secondary="#56b4e9", accent="#56b4e9", foreground="#e8e8e8", background="#101216",
    surface="#16191f", panel="#242a33", success="#56b4e9", warning="#f0e442", error="#ff9f1c", dark=True,
)  # fmt: skip
BLIND_LIGHT = Theme(
    "kpolicy-cvd-light", primary="#0072b2", secondary="#0072b2", accent="#0072b2", foreground="#17181c", background="#fcfcfa",
    surface="#f2f2ee", panel="#e2e2da", success="#0072b2", warning="#7a5c00", error="#b34700", dark=False,
)  # fmt: skip


def _dark(name: str, palette: str) -> Theme:
    """Return a dark theme: primary, accent, foreground, background, surface, panel, success, warning and error colour."""
    primary, accent, foreground, background, surface, panel, success, warning, error = (
        f"#{color}" for color in palette.split()
    )
    return Theme(
        name,
        primary=primary,
        secondary=accent,
        accent=accent,
        foreground=foreground,
        background=background,
        surface=surface,
        panel=panel,
        success=success,
        warning=warning,
        error=error,
        dark=True,
    )


_PALETTES = {
    "catppuccin": "89b4fa 94e2d5 cdd6f4 1e1e2e 24243a 313244 a6e3a1 f9e2af f38ba8",
    "gruvbox": "83a598 d3869b ebdbb2 1d2021 282828 3c3836 b8bb26 fabd2f fb6a55",
    "nord": "88c0d0 c3aad8 e5e9f0 2e3440 343b49 434c5e a3be8c ebcb8b ec9aa3",
    "high-contrast": "ffffff 00ffff ffffff 000000 000000 303030 00ff66 ffff00 ff8080",
}
_NAMED = {
    "dark": DARK,
    "light": LIGHT,
    "cvd-dark": BLIND_DARK,
    "cvd-light": BLIND_LIGHT,
    **{word: _dark(f"kpolicy-{word}", palette) for word, palette in _PALETTES.items()},
}
THEMES = tuple(_NAMED.values())
SHORT = {**{word: theme.name for word, theme in _NAMED.items()}, "ansi": "ansi-dark"}
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
