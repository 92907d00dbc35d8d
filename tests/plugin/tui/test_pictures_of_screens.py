"""Every screen in every condition, as text that can be read in a review, and the colours of themes as pictures.

Draw anew with `KPOLICY_DRAW=1 python -m pytest tests/plugin/tui/test_pictures_of_screens.py`, and look at the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubectl_kpolicy.actions.screens import SCREENS
from kubectl_kpolicy.cluster.cache import ClusterCache, Trouble
from kubectl_kpolicy.tui.modals.reveal import Reveal
from kubectl_kpolicy.tui.themes import SHORT
from tests.plugin.scene import NOW, hindered, world

from .stage import LARGE, SMALL, Stage, console, on_stage, press, settled, text_of, window_of

FOLDER = Path(__file__).parent / "pictures"
SIZES = {"80x24": SMALL, "140x40": LARGE}


def unreachable() -> ClusterCache:
    there, problem = world(), hindered(Trouble.UNREACHABLE).problem("reports")
    for name in (
        "reports",
        "events",
        "clusterpolicies",
        "exceptions",
        "grants",
        "codes",
        "clustercleanuppolicies",
        "cleanuppolicies",
        "auditsegments",
    ):
        there.hindered(name, problem)
    return there


CONDITIONS = {
    "loaded": world,
    "empty": lambda: world({}),
    "loading": ClusterCache,
    "forbidden": lambda: hindered(Trouble.FORBIDDEN),
    "stale": unreachable,
}


def compare(name: str, drawn: str) -> list[str]:
    """Return the name where a picture is another than the one that was kept; keep it when told to."""
    path = FOLDER / name
    if os.environ.get("KPOLICY_DRAW"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(drawn)
    if not path.exists():
        return [f"{name}: there is no picture yet"]
    kept = path.read_text()
    if kept == drawn:
        return []
    other = [
        f"- {one}\n+ {two}"
        for one, two in zip(kept.splitlines(), drawn.splitlines(), strict=False)
        if one != two
    ]
    return [f"{name}:\n" + "\n".join(other[:6])]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_screens_look_as_they_were_reviewed(condition: str, size: str) -> None:
    at = NOW.replace(minute=7) if condition == "stale" else NOW
    wrong: list[str] = []

    async def look(app, _pilot) -> None:
        for screen in SCREENS:
            app.go(screen)
            await settled(app)
            wrong.extend(compare(f"{condition}/{screen}-{size}.txt", text_of(app) + "\n"))

    on_stage(look, console(source=Stage(CONDITIONS[condition](), at=at)), size=SIZES[size])
    assert not wrong, "\n".join(wrong)


WINDOWS = {
    "help": ("question_mark",),
    "menu": ("x",),
    "details": ("enter",),
    "yaml": ("y",),
    "explain": ("down", "e"),
    "grouped": ("b",),
    "marked": ("space", "space"),
    "wide": ("w",),
    "sort": ("o",),
    "themes": ("T",),
    "copy": ("c",),
    "log": ("down", "e", "tilde"),
    "command": ("colon", *"grants"),
    "columns": ("C",),
    "filter": ("=",),
    "filter-value": ("=", *"policy", "enter", "enter"),
    "namespaces": ("ctrl+n",),
    "jump": ("ctrl+o",),
    "request-1": ("down", "r"),
    "request-2": ("down", "r", "ctrl+j"),
    "request-3": ("down", "r", "ctrl+j", "ctrl+j", *"it_is_rebuilt"),
    "request-4": ("down", "r", "ctrl+j", "ctrl+j", *"it_is_rebuilt", "ctrl+j"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_look_as_they_were_reviewed(name: str) -> None:
    wrong: list[str] = []

    async def look(app, _pilot) -> None:
        wrong.extend(compare(f"windows/{name}.txt", window_of(app) + "\n"))

    on_stage(look, keys=WINDOWS[name])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", ["plain", "production"])
def test_the_frame_fits_a_very_large_screen(kind: str) -> None:
    wrong: list[str] = []

    async def look(app, _pilot) -> None:
        wrong.extend(compare(f"frame/{kind}-200x50.txt", text_of(app) + "\n"))

    on_stage(look, console(is_production=kind == "production"), size=(200, 50))
    assert not wrong, "\n".join(wrong)


def test_grants_side_by_side_look_as_they_were_reviewed() -> None:
    wrong: list[str] = []

    async def look(app, pilot) -> None:
        await press(pilot, "space", "D")
        wrong.extend(compare("windows/compared.txt", window_of(app) + "\n"))

    on_stage(look, console(screen="grants"), size=LARGE)
    assert not wrong, "\n".join(wrong)


def test_the_whole_form_fits_a_tall_screen() -> None:
    wrong: list[str] = []

    async def look(app, _pilot) -> None:
        wrong.extend(compare("windows/request-all.txt", window_of(app) + "\n"))

    on_stage(look, keys=("down", "r"), size=(140, 48))
    assert not wrong, "\n".join(wrong)


def test_dialogs_look_as_they_were_reviewed() -> None:
    wrong: list[str] = []

    async def look(app, pilot) -> None:
        await press(pilot, "ctrl+d")
        wrong.extend(compare("windows/danger.txt", window_of(app) + "\n"))
        await press(pilot, "escape")
        app.push_screen(
            Reveal(
                "One-time code otc-7f3a",
                "7GQ2-K9XD-PM4T-WZ81-VN30",
                "for carol, disallow-host-namespaces, Pod/debug-shell",
            )
        )
        await settled(app)
        wrong.extend(compare("windows/reveal.txt", window_of(app) + "\n"))

    on_stage(look, console(screen="exceptions"))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("theme", SHORT)
def test_themes_look_as_they_were_reviewed(theme: str) -> None:
    wrong: list[str] = []

    async def look(app, _pilot) -> None:
        for screen in ("violations", "grants"):
            app.go(screen)
            await settled(app)
            wrong.extend(compare(f"themes/{theme}-{screen}.svg", app.export_screenshot()))

    on_stage(look, console(theme=theme))
    assert not wrong, "\n".join(wrong)
