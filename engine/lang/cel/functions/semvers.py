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


@LIBRARY.add("semver(string) -> Semver")
def _semver(text: str) -> Version:
    return semver.parse(text)


@LIBRARY.add("semver(string, bool) -> Semver")
def _semver_normalized(text: str, normalize: bool) -> Version:
    return semver.parse(_normalized(text) if normalize else text)


@LIBRARY.add("isSemver(string) -> bool")
def _is_semver(text: str) -> bool:
    return _is_semver_normalized(text, normalize=False)


@LIBRARY.add("isSemver(string, bool) -> bool")
def _is_semver_normalized(text: str, normalize: bool) -> bool:
    try:
        _semver_normalized(text, normalize)
    except EvaluationError:
        return False
    return True


@LIBRARY.add("Semver.isLessThan(Semver) -> bool")
def _is_less(one: Version, other: Version) -> bool:
    return one.order() < other.order()


@LIBRARY.add("Semver.isGreaterThan(Semver) -> bool")
def _is_greater(one: Version, other: Version) -> bool:
    return one.order() > other.order()


@LIBRARY.add("Semver.compareTo(Semver) -> int")
def _compare(one: Version, other: Version) -> int:
    return (one.order() > other.order()) - (one.order() < other.order())


@LIBRARY.add("Semver.major() -> int")
def _major(version: Version) -> int:
    return version.major


@LIBRARY.add("Semver.minor() -> int")
def _minor(version: Version) -> int:
    return version.minor


@LIBRARY.add("Semver.patch() -> int")
def _patch(version: Version) -> int:
    return version.patch
