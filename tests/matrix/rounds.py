"""Rounds of the matrix: some ways, played by everybody on a place of their own, and what has to hold of what came of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.matrix import ways_past
from tests.matrix.actors import ANYBODY, CONTROL, OWN, PEOPLE
from tests.matrix.cells import Cell, Fate
from tests.matrix.place import place, running
from tests.matrix.playing import play

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.matrix.place import Place
    from tests.matrix.ways import Way

LEAST_ALLOWED = 0.032
"""The part of the cells to which somebody goes that has to happen: a matrix in which nothing happens shows nothing."""


async def played(folder: Path, ways: Sequence[Way], grants: Sequence[str] = ()) -> list[Cell]:
    """Play ways, and grants of exceptions from policies of the kinds in `grants`, by everybody."""
    cells: list[Cell] = []
    async with place(folder) as at, running(at):
        for number, way in enumerate(ways):
            cells += await play(at, way, number)
        for number, kind in enumerate(grants, len(ways)):
            cells += await _granted(at, ways_past.Grant(kind), number)
    return cells


def hold(cells: Sequence[Cell], ways: Sequence[Way]) -> None:
    """Raise AssertionError where something happened that may not, or nothing by one of the ways."""
    assert [str(cell) for cell in cells if cell.fate is Fate.WRONG] == []
    happened = Counter(cell.way for cell in cells if cell.fate is Fate.ALLOWED)
    applicable = sum(cell.fate is not Fate.NOT_APPLICABLE for cell in cells)
    assert happened.total() > LEAST_ALLOWED * applicable
    for way in ways:
        # one that leaves open what it reads or changes is written by who may do everything there, and is left out for them
        may_be_none = way.name.startswith(("clone", "mutate existing by expression")) and way.within
        assert happened[way.name] or may_be_none, f"nothing ever happened by {way.name}"


async def by_path(folder: Path) -> list[Cell]:
    """Play forged reviews where a path, which the forger knows, is all that tells the API server from him."""
    async with place(folder) as at, running(at, "--secret-path"):
        cells = await play(at, ways_past.ForgedReview("path"), 0, [ANYBODY, CONTROL])
    assert any(cell.fate is Fate.NOTHING for cell in cells), "a forged review was answered"
    return cells


async def _granted(at: Place, way: ways_past.Grant, number: int) -> list[Cell]:
    """Play grants; and have one approved by another person, which makes an exception as it is meant to."""
    cells = await play(at, way, number)
    editor, approver = (one for one in PEOPLE if one.name in ("editor", "approver"))
    name = f"by-two-{number}"
    await way.request(at, editor, OWN, name)
    await way.approve(at, approver, OWN, name, approver.user.name)
    await at.later(seconds=30)
    pair = Cell(way.name, editor, "create", way.made, OWN, name)
    assert way.happened(at, pair), "a grant that another person approved makes its exception"
    return cells
