"""Semantic versions: `semver("1.2.3").isLessThan(semver("1.3.0"))`."""

from __future__ import annotations

import re
from typing import Final

from engine.errors import EvaluationError
from engine.lang import semver
from engine.lang.cel.values import TYPE_NAMES
from engine.lang.semver import Version

from .registry import KINDS, Library

LIBRARY: Final = Library(cost=20)
KINDS["Semver"] = (Version,)
TYPE_NAMES[Version] = "kubernetes.Semver"
_ZEROS: Final = re.compile(r"^0+(?=[0-9])")


def _normalized(text: str) -> str:
    """Drop a leading `v` and leading zeros, and add missing numbers, as Kubernetes does when asked to normalize."""
    main, mark, rest = text.removeprefix("v"), "", ""
    found = re.search(r"[-+]", main)
    if found is not None:
        main, mark, rest = main[: found.start()], found[0], main[found.end() :]
    parts = [_ZEROS.sub("", part) for part in main.split(".")]
    parts += ["0"] * (3 - len(parts))
    return ".".join(parts) + mark + rest


@LIBRARY.add("semver(string) -> Semver", "semver(string, bool) -> Semver")
def _semver(text: str, normalize: bool = False) -> Version:
    return semver.parse(_normalized(text) if normalize else text)


@LIBRARY.add("isSemver(string) -> bool", "isSemver(string, bool) -> bool")
def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except EvaluationError:
        return False
    return True


LIBRARY.declare(
    {
        "Semver.isLessThan(Semver) -> bool": lambda one, other: one.order() < other.order(),
        "Semver.isGreaterThan(Semver) -> bool": lambda one, other: one.order() > other.order(),
        "Semver.compareTo(Semver) -> int": (
            lambda one, other: (one.order() > other.order()) - (one.order() < other.order())
        ),
        "Semver.major() -> int": lambda version: version.major,
        "Semver.minor() -> int": lambda version: version.minor,
        "Semver.patch() -> int": lambda version: version.patch,
    }
)
