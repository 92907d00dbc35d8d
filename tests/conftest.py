"""For all tests: hypothesis without deadlines (the machine is shared) and without a database in the tree, and what a clone alone skips."""

from __future__ import annotations

import gc
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from engine import collector

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("kpolicy", deadline=None, database=None, max_examples=100)
settings.load_profile("kpolicy")

PUBLISHED = re.compile(r"KPOLICY_(?:SHARED|CONFORMANCE)")
"""What the reason of a skipped test names where published files that it reads are not beside the clone."""

COUNTED = "counted"
"""The property by which a test says how much it tried; `record_property` carries it from whatever process the test ran in."""


@pytest.fixture(autouse=True)
def _collector_as_before() -> Iterator[None]:
    """Let no program that a test plays in this process leave its collector to the tests after it.

    What one has frozen is counted by every command that they run, object by object.
    """
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    collector._settled.clear()
    gc.set_threshold(*before)
    gc.enable()


@pytest.fixture
def uncollected_heap() -> None:
    """Leave what earlier tests of this process hold out of collections: a long test that makes much waits for them up to ten times as long.

    The fixture above has it collected again after the test.
    """
    collector.settle(*gc.get_threshold())


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say what tests counted, and in the last line how many were skipped for want of published files."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", ()) if reporter is not None else ()
    if reporter is not None and "passed" in reporter.stats:
        for test in (*reporter.stats["passed"], *reporter.stats.get("failed", ())):
            for line in (text for key, text in test.user_properties if key == COUNTED):
                reporter.write_line(line)
        reporter.write_line(said_of([str(one.longrepr) for one in skipped]))


def said_of(reasons: list[str]) -> str:
    """Return the last line of a run that skipped tests for these reasons."""
    lacking = sum(bool(PUBLISHED.search(one)) for one in reasons)
    if not lacking:
        return "no test was skipped for want of ../shared"
    return f"{lacking} tests were skipped: they read published files, in ../shared or where KPOLICY_SHARED says (see docs/testing.md)"
