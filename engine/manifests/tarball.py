"""YAML files inside a `.tar.gz`: the older form of signed messages, read in memory and never extracted.

For the reading of signed documents only. Written by hand because the standard reader wants a file and follows links,
sparse maps and much else that a signed message has no use for; here only regular files count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError, LimitError

from .annotations import gunzip

if TYPE_CHECKING:
    from collections.abc import Iterator

GZIP_MAGIC = b"\x1f\x8b"
_BLOCK = 512
_MAX_MEMBERS = 256
_EMPTY_BLOCK = bytes(_BLOCK)
_YAML_ENDINGS = (".yaml", ".yml")


def yaml_members(data: bytes) -> list[bytes]:
    """Return the contents of all YAML files of a compressed archive, in its order.

    Raise EvaluationError when it is no archive, LimitError when it is too large.
    """
    archive = gunzip(data)
    return [content for name, content in _files(archive) if name.endswith(_YAML_ENDINGS)]


def _files(archive: bytes) -> Iterator[tuple[str, bytes]]:
    position, long_name = 0, ""
    for _ in range(_MAX_MEMBERS):
        header = archive[position : position + _BLOCK]
        if not header or header == _EMPTY_BLOCK:
            return
        size, kind = _size(header), header[156:157]
        content = archive[position + _BLOCK : position + _BLOCK + size]
        if len(header) < _BLOCK or len(content) < size:
            raise _not_an_archive()
        position += _BLOCK + -(-size // _BLOCK) * _BLOCK
        if kind == b"x":
            long_name = _pax_path(content)
        elif kind == b"L":
            long_name = _text(content)
        else:
            if kind in {b"0", b"\0"}:
                yield long_name or _name(header), content
            long_name = ""
    raise LimitError(f"an archive of more than {_MAX_MEMBERS} members")


def _size(header: bytes) -> int:
    digits = header[124:136].strip(b" \0")
    checksum = header[148:156].strip(b" \0")
    try:
        expected, size = int(checksum or b"0", 8), int(digits or b"0", 8)
    except ValueError as error:
        raise _not_an_archive() from error
    if expected != sum(header[:148]) + 8 * ord(" ") + sum(header[156:]) or size < 0:
        raise _not_an_archive()
    return size


def _name(header: bytes) -> str:
    prefix = _text(header[345:500]) if header[257:262] == b"ustar" else ""
    name = _text(header[:100])
    return f"{prefix}/{name}" if prefix else name


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")


def _pax_path(content: bytes) -> str:
    """Find `path` among records of a length, a blank, `key=value` and a line feed."""
    while content:
        digits, _, _ = content.partition(b" ")
        if not digits.isdigit() or len(digits) > len(str(len(content))):
            break
        length = int(digits)
        record = content[len(digits) + 1 : length].rstrip(b"\n")
        key, _, value = record.partition(b"=")
        if key == b"path":
            return value.decode("utf-8", "replace")
        if not length:
            break
        content = content[length:]
    return ""


def _not_an_archive() -> EvaluationError:
    return EvaluationError("the signed message is not a readable archive")
