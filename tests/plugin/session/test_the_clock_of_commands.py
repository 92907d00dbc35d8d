"""The clock that commands go by: the server's, and nothing that the environment says."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kubectl_kpolicy.session import cluster

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[3]
SETTINGS = {"KPOLICY_CONFIG", "KPOLICY_SANDBOX_DIR", "KPOLICY_REPORTS_DSN"}
"""What people set, and what a Secret says of a database; the settings of the configuration follow their keys and are not listed."""


def test_the_environment_sets_no_command_s_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPOLICY_NOW", "2001-01-01T00:00:00+00:00")
    assert abs(cluster.now() - datetime.now(UTC)) < timedelta(minutes=1)


def test_no_variable_of_the_environment_is_a_hook_of_tests() -> None:
    read = set()
    for package in ("controllers", "engine", "kubectl_kpolicy"):
        for file in (ROOT / package).rglob("*.py"):
            read |= set(re.findall(r"KPOLICY_[A-Z][A-Z_]*[A-Z]", file.read_text()))
    named = {one for one in read if "__" not in one}
    assert named == SETTINGS
