"""Pictures of every screen in windows of three sizes: each is what the console draws now from the recording beside them."""

from __future__ import annotations

import re

import pytest

from kubectl_kpolicy.actions.screens import SCREENS
from tests.screenshots import pngs
from tests.screenshots.screens import FOLDER, PICTURES, RECORDING, SIZES, drawings, files

LARGEST_RECORDING = 300_000
LARGEST_FOLDER = 6_000_000
AGAIN = "`make screenshots` draws them again; look at them before they are committed"


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    """Every picture, drawn now."""
    return drawings()


@pytest.mark.timeout(300)
def test_pictures_are_fresh(drawn):
    stale = [
        name
        for name, svg in drawn.items()
        if pngs.source_of(FOLDER / f"{name}.png") != pngs.hash_of(svg)
    ]
    stale += [path.name for path in FOLDER.glob("*.svg") if path.read_text() != drawn[path.stem]]

    assert stale == [], AGAIN


def test_there_is_a_picture_of_every_screen_in_every_size_and_none_of_anything_else():
    for wide, high in SIZES:
        assert {f"{screen}-{wide}x{high}" for screen in SCREENS} <= set(PICTURES)
    assert {path.name for path in FOLDER.iterdir()} == files()
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < LARGEST_FOLDER


def test_no_picture_fetches_anything_or_shows_a_code(drawn):
    for name, svg in drawn.items():
        assert not re.search(r"https?://(?!www\.w3\.org|www\.textualize\.io)", svg), name
        assert not re.search(r"(?:[0-9A-Z]{4}-){4}[0-9A-Z]{4}", svg), name
        assert ("••••-••••" in svg) is name.startswith("reveal"), name


def test_the_recording_is_small_and_holds_no_secret():
    text = RECORDING.read_text()

    assert len(text) < LARGEST_RECORDING
    assert not re.search(r"(?:[0-9A-Z]{4}-){4}[0-9A-Z]{4}", text)
    for word in ("PRIVATE KEY", "managedFields", '"kind":"Secret"'):
        assert word not in text
