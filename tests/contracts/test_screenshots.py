"""Pictures of the README: one for each screen, and each is what the console draws now from the recording beside them."""

from __future__ import annotations

import re

import pytest

from kubectl_kpolicy.actions.screens import SCREENS
from tests.screenshots import pngs
from tests.screenshots.screens import FOLDER, PICTURES, RECORDING, drawings

LARGEST_RECORDING = 300_000
AGAIN = "`make screenshots` draws them again; look at them before they are committed"


@pytest.mark.timeout(300)
def test_pictures_are_fresh():
    stale = [name for name, svg in drawings().items() if _kept(name) != svg]

    assert stale == [], AGAIN


def _kept(name: str) -> str:
    path = FOLDER / f"{name}.svg"
    return path.read_text() if path.exists() else ""


def test_each_picture_is_there_as_png_too_made_from_the_svg_beside_it():
    stale = [name for name in PICTURES if pngs.source_of(FOLDER / f"{name}.png") != pngs.hash_of(_kept(name))]  # fmt: skip

    assert stale == [], AGAIN


def test_there_is_a_picture_of_every_screen_and_none_of_anything_else():
    assert set(SCREENS) <= set(PICTURES)
    files = {path.name for path in FOLDER.iterdir()}
    assert files == {RECORDING.name, *(f"{name}.{kind}" for name in PICTURES for kind in ("svg", "png"))}  # fmt: skip


def test_no_picture_fetches_anything_or_shows_a_code():
    for name in PICTURES:
        svg = _kept(name)
        assert not re.search(r"https?://(?!www\.w3\.org|www\.textualize\.io)", svg), name
        assert not re.search(r"(?:[0-9A-Z]{4}-){4}[0-9A-Z]{4}", svg), name
    assert "••••-••••" in _kept("reveal")


def test_the_recording_is_small_and_holds_no_secret():
    text = RECORDING.read_text()

    assert len(text) < LARGEST_RECORDING
    assert not re.search(r"(?:[0-9A-Z]{4}-){4}[0-9A-Z]{4}", text)
    for word in ("PRIVATE KEY", "managedFields", '"kind":"Secret"'):
        assert word not in text
