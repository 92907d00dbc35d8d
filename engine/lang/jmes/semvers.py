"""`semver_compare`: a version against a range (row F-08)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.lang import semver

from .signature import Table

if TYPE_CHECKING:
    from .env import Env

table = Table()


@table.function("semver_compare(string, string) boolean", "whether the version is in the range")
def semver_compare(_env: Env, version: str, wanted: str) -> bool:
    """Test a version; one that cannot be read counts as 0.0.0, a range that cannot is an error."""
    try:
        given = semver.parse(version)
    except EvaluationError:
        given = semver.Version()
    return semver.parse_range(wanted)(given)
