"""Pictures in the README: each is what the program prints now."""

from __future__ import annotations

from tests.screenshots import FOLDER, drawings


def test_pictures_are_fresh() -> None:
    for name, svg in drawings().items():
        assert (FOLDER / name).read_text() == svg, (
            f"draw it again: python -m tests.screenshots ({name})"
        )
