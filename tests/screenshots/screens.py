"""Draws the screens: the console on the recording, at its end, with keys instead of hands."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual.widgets import Input

from controllers.kube.errors import Unreachable
from kubectl_kpolicy.cluster.beside import AbsentSource, BesideSource
from kubectl_kpolicy.cluster.recording import ReplaySource, read_recording
from kubectl_kpolicy.tui.app import Console
from kubectl_kpolicy.tui.modals.reveal import Reveal
from kubectl_kpolicy.tui.settings import Settings
from kubectl_kpolicy.tui.stage import OneCluster
from tests.plugin.tui.stage import drawn, press, settled, shown

if TYPE_CHECKING:
    from kubectl_kpolicy.cluster.sources import Source

FOLDER = Path(__file__).parents[2] / "screenshots"
RECORDING = FOLDER / "session.jsonl"
SIZES = ((80, 24), (140, 40), (200, 50))
"""Of windows as people have them, the smallest first."""
USUAL = SIZES[1]
"""Of the pictures that lie here as SVG as well: as text they are larger than as PNG."""
_PATIENCE, _STILL, _PAUSE = 60.0, 4, 0.05
_FONT = re.compile(r"@font-face \{[^}]*\}\s*")
_UNIQUE = re.compile(r"terminal-\d+")
_FAMILY = "font-family: Fira Code, DejaVu Sans Mono, Menlo, Consolas, monospace;"


@dataclass(frozen=True, slots=True)
class Picture:
    """A screen, as whom it is looked at, and the keys that lead to what is shown."""

    screen: str
    keys: tuple[str, ...] = ()
    user: str = "bob"
    code: str = ""
    is_beside: bool = False
    size: tuple[int, int] = USUAL

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The kinds of files that it lies here as."""
        return ("png", "svg") if self.size == USUAL else ("png",)


_USUALLY = {
    "pulse": Picture("pulse"),
    "violations": Picture("violations", ("down", "down")),
    "blocks": Picture("blocks"),
    "policies": Picture("policies"),
    "explain": Picture("violations", ("down", "e")),
    "exceptions": Picture("exceptions"),
    "grants": Picture("grants"),
    "inbox": Picture("inbox"),
    "codes": Picture("codes"),
    "cleanup": Picture("cleanup"),
    "audit": Picture("audit"),
    "health": Picture("health"),
    "wizard": Picture("violations", ("down", "r", "ctrl+j", "ctrl+j", *"the image is rebuilt tonight"), "alice"),
    "danger": Picture("exceptions", ("ctrl+d",)),
    "reveal": Picture("codes", (), "bob", "7GQ2-K9XD-PM4T-WZ81-VN30"),
    "clusters": Picture("violations", ("b",) * 5, is_beside=True),
}  # fmt: skip
PICTURES = {
    f"{name}-{size[0]}x{size[1]}": replace(one, size=size)
    for name, one in _USUALLY.items()
    for size in SIZES
}


def files() -> set[str]:
    """Return the names of all files of the folder."""
    made = {f"{name}.{kind}" for name, one in PICTURES.items() for kind in one.suffixes}
    return {RECORDING.name, *made}


def drawings() -> dict[str, str]:
    """Return the SVG of every picture by name."""
    return {name: asyncio.run(_drawn(name, picture)) for name, picture in PICTURES.items()}


async def _drawn(name: str, picture: Picture) -> str:
    app = _console(picture)
    async with shown(app, (), picture.size) as pilot:
        await _still(app, name)
        for key in picture.keys:
            await press(pilot, key)
            await drawn(app)
        if picture.code:
            app.push_screen(
                Reveal(
                    "One-time code",
                    picture.code,
                    "for alice, no-host-namespaces/host-pid, Pod/trace-shell",
                )
            )
            await settled(app)
        _settle(app)
        return await _still(app, name)


def _console(picture: Picture) -> Console:
    """Return a console on the recording, or on it at two instants beside a cluster that does not answer."""
    past = read_recording(RECORDING)
    source: Source = ReplaySource(past)
    if picture.is_beside:
        earlier = past.began_at + (past.ended_at - past.began_at) / 3
        silent = Unreachable("there was no answer within 30s")
        source = BesideSource({
            past.name: source,
            "prod-us": ReplaySource(past, earlier),
            "prod-ap": AbsentSource("prod-ap", silent, source.now),
        })  # fmt: skip
    clusters = {name: OneCluster(one, user=picture.user, name=name) for name, one in source.members.items()} if isinstance(source, BesideSource) else None  # fmt: skip
    settings = Settings(context=source.name, user=picture.user, screen=picture.screen)
    return Console(source, settings, clusters=clusters)


def _settle(app: Console) -> None:
    """Stop what would look different from drawing to drawing: the cursor's blinking, and where the focus is by now."""
    for line in app.screen.query(Input):
        line.cursor_blink = False
    for below in app.screen_stack[:-1]:
        below.set_focus(None)
    if len(app.screen_stack) == 1:
        app._focus()


async def _still(app: Console, name: str) -> str:
    """Return the picture as soon as nothing has changed in it for a while."""
    kept, same = "", 0
    async with asyncio.timeout(_PATIENCE):
        while same < _STILL:
            await drawn(app)
            svg = plain(app.export_screenshot(title=f"kubectl kpolicy tui {name}"), name)
            same = same + 1 if svg == kept else 0
            kept = svg
            await asyncio.sleep(_PAUSE)
    return kept


def plain(svg: str, name: str) -> str:
    """Return a picture that fetches no font and carries no name that changes from drawing to drawing."""
    without = _UNIQUE.sub(f"kpolicy-{name}", _FONT.sub("", svg))
    without = re.sub(r"font-family: (Fira Code|FiraCode)[^;]*;", _FAMILY, without)
    return "".join(f"{line.rstrip()}\n" for line in without.splitlines() if line.strip())
