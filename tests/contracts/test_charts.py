"""charts/ is what would be made of the objects that are installed, so that neither says what the other does not."""

from __future__ import annotations

from tests.packaging import chart


def test_every_file_of_the_charts_is_as_it_would_be_made():
    assert chart.differing() == [], "python -m tests.packaging.chart"
