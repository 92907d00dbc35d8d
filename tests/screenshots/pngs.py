"""Pictures as PNG, each with the hash of the SVG that it was made from: whether one is stale is told without drawing it."""

from __future__ import annotations

import hashlib
import html
import re
import struct
import subprocess
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROGRAMS = ("rsvg-convert", "pngquant")
_COMMANDS = (
    ("rsvg-convert", "--zoom", "0.95", "--format", "png"),
    ("pngquant", "--speed", "1", "64", "-"),  # a quarter of the size, and no difference to be seen
)
_HEAD = b"\x89PNG\r\n\x1a\n"
_KEY = b"Source-SHA256"
_SIZE = 21.0
"""Of the letters, in pixels: as tall as a line, so that the lines of frames meet."""
_SQUEEZE = 0.985
"""What makes such letters of DejaVu Sans Mono about as wide as a column."""
_COLUMN = 12.2
_PIECE = 4
_TEXT = re.compile(
    r'<text (class="[^"]*-r\d+") x="([\d.]+)" (y="[\d.]+") [^>]*?(clip-path="[^"]*")>([^<]*)</text>'
)


def hash_of(svg: str) -> str:
    """Return what names an SVG."""
    return hashlib.sha256(svg.encode()).hexdigest()


def drawn(svg: str) -> bytes:
    """Return an SVG as a PNG that carries its hash; CalledProcessError and OSError where it cannot be converted."""
    plain = _TEXT.sub(_pieces, svg).replace("font-size: 20px", f"font-size: {_SIZE}px")
    png = plain.encode()
    for command in _COMMANDS:
        png = subprocess.run(command, input=png, capture_output=True, check=True).stdout
    return stamped(png, hash_of(svg))


def _pieces(found: re.Match[str]) -> str:
    """Return a text as short ones, each at its column: the converter knows no text length, and drops leading blanks."""
    kind, left, height, clip, text = found.groups()
    letters = html.unescape(text).replace("\xa0", " ").rstrip("\n")
    made = []
    for start in range(0, len(letters), _PIECE):
        piece = letters[start : start + _PIECE]
        x = float(left) + start * _COLUMN
        move = f"translate({x * (1 - _SQUEEZE):.2f} 0) scale({_SQUEEZE} 1)"
        made.append(
            f'<text xml:space="preserve" transform="{move}" {kind} x="{x:.1f}" {height} {clip}>{html.escape(piece)}</text>'
        )
    return "".join(made)


def stamped(png: bytes, text: str) -> bytes:
    """Return a PNG with a text chunk after its header."""
    body = b"tEXt" + _KEY + b"\0" + text.encode()
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    end = len(_HEAD) + 25
    return png[:end] + chunk + png[end:]


def source_of(path: Path) -> str:
    """Return the hash that a PNG carries; empty without one, or without the file."""
    if not path.exists():
        return ""
    _, found, rest = path.read_bytes()[:512].partition(_KEY + b"\0")
    return rest[:64].decode() if found else ""
