"""Three hundred values that somebody could put into an object to harm whoever looks at it, made from a table of generators."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ESC, CSI8, BEL, ST = "\x1b", "\x9b", "\x07", "\x1b\\"


def _controls() -> Iterator[str]:
    """Every control character of ASCII and Latin-1."""
    for code in (*range(0x20), *range(0x7F, 0xA0)):
        yield f"a{chr(code)}b"


def _sequences() -> Iterator[str]:
    """Cursor, screen, colours, modes, reports, keys, scrolling: by ESC [ and by the single character."""
    bodies = ("2J", "H", "1;1H", "10A", "99B", "K", "1K", "31m", "8m", "7;5m", "0m", "38;2;255;0;0m", "?25l", "?1049h", "?1049l", "?2004h",
              "?1000h", "?1006h", "?2026h", "6n", "5n", "c", ">c", "0x", "r", "1;5r", "4h", "20h", "?5h", "!p", "1;1;1$x", "3J", "s", "u",
              "21t", "8;50;132t", "11;0;0t", ">4;2m", "=5u", "5i", "4i")  # fmt: skip
    for body in bodies:
        yield f"x{ESC}[{body}y"
        yield f"x{CSI8}{body}y"


def _commands() -> Iterator[str]:
    """Commands to the terminal's owner: title, clipboard, links, colours, notifications, files; ended in both ways."""
    bodies = ("0;owned", "2;owned", "1;owned", "8;;https://evil.example/", "52;c;cm0gLXJm", "52;c;?", "4;1;?", "10;?", "11;#000000", "50;?",
              "7;file:///etc/passwd", "9;run", "777;notify;a;b", "1337;File=inline=1:AAAA", "133;A", "104", "110", "633;E;rm")  # fmt: skip
    for body in bodies:
        yield f"{ESC}]{body}{BEL}"
        yield f"{ESC}]{body}{ST}"
        yield f"\x9d{body}\x9c"


def _strings() -> Iterator[str]:
    """Device control, application commands, messages, starts of strings; single escapes."""
    for start in ("P", "_", "^", "X", "k"):
        yield f"{ESC}{start}$qm{ST}"
    yield from (f"{chr(code)}+q544e\x9c" for code in (0x90, 0x9F, 0x9E, 0x98))
    yield f"{ESC}Pq#0;2;0;0;0~~{ST}"
    yield from (f"a{ESC}{letter}b" for letter in "c789=>DEHMNOZ")
    yield from (f"a{ESC}{two}b" for two in ("#8", "(0", ")B", "%G", " F", "[", "]", "P"))


def _directions() -> Iterator[str]:
    """Marks that turn the direction of writing round."""
    for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C):
        yield f"user{chr(code)}gpj.exe"


def _widthless() -> Iterator[str]:
    """Characters without width, tags, separators, fillers."""
    for code in (0x200B, 0x200C, 0x200D, 0x2060, 0x2061, 0x2064, 0xFEFF, 0x180E, 0xAD, 0x2028, 0x2029, 0x206A, 0xFFF9, 0xE0001, 0xE0041, 0xE007F):  # fmt: skip
        yield f"ad{chr(code)}min"
    yield from ("\u3164" * 9, "\u115f\u1160", "\u2800" * 9, "a\ufe0fb", "a\U000e0100b", "\xa0\xa0x")


def _wide() -> Iterator[str]:
    """Combining marks in floods, wide scripts, emoji of several parts, ambiguous widths."""
    yield from (
        "e" + "\u0301" * 200,
        "\u0301" * 40,
        "Z\u0351\u036b\u0343a\u0328\u033elgo",
        "\u0e33" * 9,
        "\u0488x\u20dd",
    )
    yield from (
        "検索-api" * 9,
        "\uff41\uff42" * 20,
        "한국어" * 20,
        "\uffe6\u3000|",
        "👩‍👩‍👧‍👦" * 5,
        "🇩🇪🇩",
        "🏳️‍🌈",
        "👍🏽",
        "1️⃣",
    )
    yield from ("±×÷" * 12, "مرحبا", "שלום abc 123", "ﷺ" * 9, "𒐫𒐫", "\u1f600\U0001f600")


def _markup() -> Iterator[str]:
    """What Rich and Textual would take for markup, variables and actions."""
    yield from ("[red]x[/red]", "[bold]x[/bold]", "[/]", "[/red]", "[", "]", "[[", "\\[", "[red", "[]", "[ ]", "[#ff0000]x", "[on red]x[/]",
                "[link=https://evil.example]x[/link]", "[@click=app.quit]x[/]", "[@click=app.bell()]x[/]", "[$error]x[/]", "$primary",
                "[reverse]x", "[blink]x[/blink]", ":smile:", "[not bold]x", "[red]x[/blue]", "[a=b]", "{name}", "{0}", "%s%n", "%(x)s")  # fmt: skip


def _lines() -> Iterator[str]:
    """Everything that some reader takes for the end of a line, and what could follow it."""
    for end in ("\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"):
        yield f"first{end}NAME   STATE{end}fake   approved"


def _huge() -> Iterator[str]:
    yield from ("A" * 20_000, "検" * 9_000, "[" * 9_000, "\u0301" * 9_000, "a\n" * 3_000, ESC * 2_000, "\u202e" * 2_000, " " * 9_000, "/" * 900)  # fmt: skip


def _shells() -> Iterator[str]:
    """What a shell, a spreadsheet, YAML or HTML would take for more than text."""
    yield from ("$(reboot)", "`reboot`", "; reboot", "x' || y", '"; x', "-rf", "--help", "=1+1", "@x", "+cmd|' /C calc'!A0", "&anchor", "*alias",
                "!!python/object:x", "a: b", "- a", "# x", "<script>alert(1)</script>", "&lt;", "null", "~", "../../etc", "CON", " ", "\t", "|", "\\n", "\\u001b[2J",
                "\ue000\uf8ff", "\ufffe", "\U0010ffff", "\ufdd0")  # fmt: skip


GENERATORS: Final = {
    "controls": _controls, "sequences": _sequences, "commands": _commands, "strings": _strings, "directions": _directions,
    "widthless": _widthless, "wide": _wide, "markup": _markup, "lines": _lines, "huge": _huge, "shells": _shells,
}  # fmt: skip


def payloads() -> list[str]:
    """Return all of them, each once."""
    return list(dict.fromkeys(text for make in GENERATORS.values() for text in make()))


def is_harmless(char: str) -> bool:
    """Tell whether a character is one that a terminal only draws: blanks of all sorts are."""
    return char.isprintable() or unicodedata.category(char) == "Zs"
