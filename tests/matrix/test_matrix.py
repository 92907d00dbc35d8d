"""The matrix: no effect passes through us that its actor could not have had himself."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.conftest import COUNTED
from tests.matrix import ways_past
from tests.matrix.actors import ANYBODY, CONTROL, FOREIGN, OWN, PEOPLE
from tests.matrix.cells import Cell, Fate
from tests.matrix.effects import BODIES, effects, written_kinds
from tests.matrix.place import place, running
from tests.matrix.playing import play, told
from tests.matrix.ways import WAYS
from tests.matrix.ways_of_cel import WAYS_OF_CEL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.matrix.place import Place

LEAST_ALLOWED = 0.02
"""The part of all cells that has to happen: a matrix in which nothing happens shows nothing."""


@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("uncollected_heap")
def test_nobody_gets_through_us_what_he_may_not_do_himself(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    cells = [*asyncio.run(_played(tmp_path / "a")), *asyncio.run(_by_path(tmp_path / "b"))]

    record_property(COUNTED, told(cells))
    assert [str(cell) for cell in cells if cell.fate is Fate.WRONG] == []
    happened = Counter(cell.way for cell in cells if cell.fate is Fate.ALLOWED)
    assert happened.total() > LEAST_ALLOWED * len(cells)
    for way in (*WAYS, *WAYS_OF_CEL, ways_past.Code("")):
        # one that leaves open what it reads or changes is written by who may do everything there, and is left out for them
        may_be_none = way.name.startswith(("clone", "mutate existing by expression")) and way.within
        assert happened[way.name] or may_be_none, f"nothing ever happened by {way.name}"


async def _played(folder: Path) -> list[Cell]:
    cells: list[Cell] = []
    async with place(folder) as at, running(at):
        ways = (*WAYS, *WAYS_OF_CEL, ways_past.ForgedReview("certificate"), ways_past.Code(""))
        for number, way in enumerate(ways):
            cells += await play(at, way, number)
        for number, kind in enumerate(("", "ValidatingPolicy"), len(ways)):
            cells += await _granted(at, ways_past.Grant(kind), number)
    return cells


async def _by_path(folder: Path) -> list[Cell]:
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


def test_every_kind_that_our_accounts_may_write_has_a_body_that_is_tried() -> None:
    tried = {(one.group, one.plural) for one in effects()}

    assert tried == written_kinds()
    assert {("kyverno.io", "policyexceptions"), ("", "configmaps")} <= tried
    assert tried <= {key[:2] for key in BODIES}
    assert OWN != FOREIGN
