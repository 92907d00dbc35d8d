"""Every screen in every condition, window and theme as a picture, compared by `pytest-textual-snapshot`.

Draw anew with `python -m pytest tests/plugin/tui/test_pictures_of_screens.py --snapshot-update`, and look at the difference:
without that switch a picture that differs fails, and `snapshot_report.html` shows both beside each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input

from kubectl_kpolicy.actions.screens import SCREENS
from kubectl_kpolicy.cluster.cache import ClusterCache, Trouble
from kubectl_kpolicy.tui.modals.reveal import Reveal
from kubectl_kpolicy.tui.themes import SHORT
from tests.plugin.scene import NOW, hindered, world

from .stage import LARGE, SMALL, Stage, beside, console, press, settled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from textual.screen import Screen

    from kubectl_kpolicy.tui.app import Console

    Looks = Callable[..., bool]

SIZES = {"80x24": SMALL, "140x40": LARGE, "200x50": (200, 50)}


@pytest.fixture
def looks(snap_compare: Any) -> Looks:
    """Compare a console with its picture after keys were pressed and a window was opened; nothing in it moves by itself."""

    def compare(
        app: Console, keys: Sequence[str] = (), size=SMALL, window: Screen[Any] | None = None
    ) -> bool:
        # What goes away or blinks by the clock of the machine is no part of a picture.
        app._disable_notifications = app._disable_tooltips = True

        async def before(pilot: Any) -> None:
            await settled(app)
            await press(pilot, *keys)
            if window is not None:
                app.push_screen(window)
                await settled(app)
            for field in app.screen.query(Input):
                field.cursor_blink = False

        return bool(snap_compare(app, terminal_size=size, run_before=before))

    return compare


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
# On a very large screen a condition changes nothing but the text that the large one shows as well.
SHOWN = [
    (condition, size)
    for condition in CONDITIONS
    for size in SIZES
    if size != "200x50" or condition == "loaded"
]


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize(("condition", "size"), SHOWN)
def test_screens_look_as_they_were_reviewed(
    condition: str, size: str, screen: str, looks: Looks
) -> None:
    at = NOW.replace(minute=7) if condition == "stale" else NOW
    shown = console(source=Stage(CONDITIONS[condition](), at=at), screen=screen)

    assert looks(shown, size=SIZES[size])


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
def test_windows_look_as_they_were_reviewed(name: str, looks: Looks) -> None:
    assert looks(console(), WINDOWS[name])


@pytest.mark.parametrize("screen", ["violations", "grants", "cleanup"])
@pytest.mark.parametrize("size", SIZES)
def test_clusters_side_by_side_look_as_they_were_reviewed(
    size: str, screen: str, looks: Looks
) -> None:
    there = {"prod-eu": world(), "prod-us": world(), "prod-ap": hindered(Trouble.UNREACHABLE)}

    assert looks(beside(there, screen=screen), ("end",), size=SIZES[size])


def test_the_frame_of_production_fits_a_very_large_screen(looks: Looks) -> None:
    assert looks(console(is_production=True), size=SIZES["200x50"])


def test_grants_side_by_side_look_as_they_were_reviewed(looks: Looks) -> None:
    assert looks(console(screen="grants"), ("space", "D"), LARGE)


def test_the_whole_form_fits_a_tall_screen(looks: Looks) -> None:
    assert looks(console(), ("down", "r"), (140, 48))


def test_what_is_dangerous_is_asked_in_a_window_of_its_own(looks: Looks) -> None:
    assert looks(console(screen="exceptions"), ("ctrl+d",))


def test_a_code_is_revealed_in_a_window_of_its_own(looks: Looks) -> None:
    window = Reveal(
        "One-time code otc-7f3a",
        "7GQ2-K9XD-PM4T-WZ81-VN30",
        "for carol, disallow-host-namespaces, Pod/debug-shell",
    )

    assert looks(console(screen="exceptions"), window=window)


@pytest.mark.parametrize("screen", ["violations", "grants"])
@pytest.mark.parametrize("theme", SHORT)
def test_themes_look_as_they_were_reviewed(theme: str, screen: str, looks: Looks) -> None:
    assert looks(console(theme=theme, screen=screen))
