"""Texts as Go's YAML library writes them, because block messages must equal upstream's byte for byte (row P-50).

Which style a text gets is decided in two steps there: quotes for texts that would be read back as something else, literal
blocks for several lines, and then what the syntax allows at all. Lines are never folded.
"""

from __future__ import annotations

import re

from engine.lang.yaml.scalars import resolve_plain

_OLD_BOOLEANS = frozenset(
    [
        "y",
        "Y",
        "yes",
        "Yes",
        "YES",
        "on",
        "On",
        "ON",
        "n",
        "N",
        "no",
        "No",
        "NO",
        "off",
        "Off",
        "OFF",
    ]
)
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\\.[0-9_]*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:$|[Tt \t])")
_UNPRINTABLE = re.compile(
    "[^\\n\\x20-\\x7e\\x85\\xa0-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]"
)
_INDICATORS = frozenset("#,[]{}&*!|>'\"%@`")
_SPACE_BREAK = re.compile(r" \n")
_BREAK_SPACE = re.compile(r"\n ")
_ESCAPES = {
    "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r",
    "\x1b": "\\e", '"': '\\"', "\\": "\\\\", "\x85": "\\N", "\xa0": "\\_", "\u2028": "\\L", "\u2029": "\\P",
}  # fmt: skip
_OTHER_BREAKS = re.compile("[\x85\u2028\u2029]")
"""Line ends of YAML that are none of Go's: shown as escapes, never as they are."""
_ESCAPED = re.compile(r'["\\\u2028\u2029]|' + _UNPRINTABLE.pattern + r"|[\n\x85]")


def scalar(text: str, indent: int) -> str:
    """Return a text as a value whose mapping stands at column `indent`."""
    if _OTHER_BREAKS.search(text):
        return _double(text)
    if "\n" in text:
        return _literal(text, indent + 2) if _fits_block(text) else _double(text)
    if _reads_as_other(text) or _UNPRINTABLE.search(text):
        return _double(text)
    return text if _fits_plain(text) else _single(text)


def _reads_as_other(text: str) -> bool:
    """Tell whether a plain text would be read back as a number, a boolean, null or a date."""
    if text == "":
        return True
    return (
        text in _OLD_BOOLEANS
        or text == "<<"
        or not isinstance(resolve_plain(text), str)
        or bool(_BASE_60.fullmatch(text))
        or bool(_DATE.match(text))
    )


def _fits_plain(text: str) -> bool:
    first, last = text[0], text[-1]
    if first == " " or last == " " or first in _INDICATORS:
        return False
    if first in "?:-" and (len(text) == 1 or text[1] == " "):
        return False
    if text.startswith(("---", "...")) or last == ":":
        return False
    return ": " not in text and " #" not in text


def _fits_block(text: str) -> bool:
    return not (
        _UNPRINTABLE.search(text)
        or _SPACE_BREAK.search(text)
        or text.endswith(" ")
        or (text.startswith("\n") and _BREAK_SPACE.match(text))
    )


def _single(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _double(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda found: _escape(found[0]), text) + '"'


def _escape(char: str) -> str:
    if known := _ESCAPES.get(char):
        return known
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _literal(text: str, indent: int) -> str:
    """Return several lines as a literal block; the mark says how they end, a digit where the first begins with a space."""
    lines = text.split("\n")
    mark = "-" if lines[-1] else "+" if len(lines) > 2 and not lines[-2] or text == "\n" else ""  # noqa: RUF021 - reads as the three cases it is
    hint = "2" if text[0] in " \n" else ""
    shown = lines if lines[-1] else lines[:-1]
    pad = " " * indent
    return "\n".join([f"|{hint}{mark}", *(pad + line if line else "" for line in shown)])
