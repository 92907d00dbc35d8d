"""Regular expressions beyond `matches`: Kubernetes' `find` and `findAll`, and `regex.replace`, `extract`, `extractAll`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError
from engine.lang import goquote, regex
from engine.lang.cel.errors import CelError
from engine.lang.cel.values import NONE, Optional

from .registry import Library

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.lang.cel.env import CelEnv


LIBRARY: Final = Library(cost=30)
_GROUP: Final = re.compile(r"\\(\\|[0-9]|.?)", re.DOTALL)


def _matches(
    pattern: str, text: str, lead: str = "given regex is invalid: "
) -> Iterator[re.Match[str]]:
    """Return all matches with their positions. Raises EvaluationError for what is no expression."""
    safe = text if text.isascii() else text.encode("utf-8", "replace").decode()
    try:
        return regex.compile(pattern).matches(safe)
    except EvaluationError as error:
        raise error.reworded(f"{lead}{error.message}") from error


@LIBRARY.add("string.find(string) -> string", env=True)
def _find(env: CelEnv, text: str, pattern: str) -> str:
    found = _find_all(env, text, pattern, 1)
    return found[0] if found else ""


@LIBRARY.add(
    "string.findAll(string) -> list(string)",
    "string.findAll(string, int) -> list(string)",
    env=True,
)
def _find_all(env: CelEnv, text: str, pattern: str, count: int = -1) -> list[str]:
    env.charge(len(text) // 8)
    found: list[str] = []
    for match in _matches(pattern, text, "Illegal regex: "):
        if count >= 0 and len(found) >= count:
            break
        env.charge(1)
        found.append(match[0])
    return found


@LIBRARY.add(
    "regex.replace(string, string, string) -> string",
    "regex.replace(string, string, string, int) -> string",
    env=True,
)
def _replace(env: CelEnv, text: str, pattern: str, template: str, count: int = -1) -> str:
    if count == 0:
        return text
    built: list[str] = []
    last = 0
    for used, match in enumerate(_matches(pattern, text, "")):
        if 0 < count <= used:
            break
        built += (text[last : match.start()], _filled(template, match))
        env.charge(1 + len(built[-1]) // 8)
        last = match.end()
    return "".join((*built, text[last:]))


def _filled(template: str, match: re.Match[str]) -> str:
    def piece(found: re.Match[str]) -> str:
        if found[1] == "\\":
            return "\\"
        if not found[1].isdigit():
            text = f"invalid replacement string: '{template}' \\ must be followed by a digit or \\"
            raise CelError(text)
        if int(found[1]) > len(match.groups()):
            count = len(match.groups())
            raise CelError(
                f"replacement string references group {found[1]} but regex has only {count} group(s)"
            )
        return match[int(found[1])] or ""

    return _GROUP.sub(piece, template)


def _extracted(match: re.Match[str], pattern: str) -> str | None:
    if len(match.groups()) > 1:
        shown = goquote.quote(pattern)
        raise CelError(f"regular expression has more than one capturing group: {shown}")
    return match[1] if match.groups() else match[0]


@LIBRARY.add("regex.extract(string, string) -> optional_type(string)", env=True)
def _extract(env: CelEnv, text: str, pattern: str) -> Optional:
    env.charge(len(text) // 8)
    for match in _matches(pattern, text):
        found = _extracted(match, pattern)
        return NONE if found is None else Optional(found)
    return NONE


@LIBRARY.add("regex.extractAll(string, string) -> list(string)", env=True)
def _extract_all(env: CelEnv, text: str, pattern: str) -> list[str]:
    env.charge(len(text) // 8)
    found = []
    for match in _matches(pattern, text):
        env.charge(1)
        part = _extracted(match, pattern)
        if part is not None:
            found.append(part)
    return found
