"""Plays the matrix: all cells of a way at once, one way after another, and what came of each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.matrix.actors import actors
from tests.matrix.cells import Cell, Fate
from tests.matrix.effects import effects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.matrix.actors import Actor
    from tests.matrix.place import Place
    from tests.matrix.ways import Way


async def play(at: Place, way: Way, number: int, who: Sequence[Actor] = ()) -> list[Cell]:
    """Return the cells of a way with their fates."""
    everybody = who or actors()
    cells = list(_cells(at, way, number, everybody))
    for cell in cells:
        if reason := way.cannot(cell.effect):
            cell.fate, cell.refusal = Fate.NOT_APPLICABLE, reason
    open_cells = [cell for cell in cells if not cell.fate]
    await way.stage(at, open_cells)
    for actor in everybody:
        await _ask(at, way, [cell for cell in open_cells if cell.actor is actor])
    await at.quiet(1.0)
    await way.set_off(at, open_cells)
    for cell in cells:
        cell.fate = cell.fate or await _fate(at, way, cell)
    await way.clear(at, open_cells)
    await at.quiet()
    return cells


async def _ask(at: Place, way: Way, cells: Sequence[Cell]) -> None:
    """Ask for all cells of an actor; who may not even write such a policy is refused by rights, and asked for one only."""
    actor = cells[0].actor
    may_write = not way.form or await at.may(actor, "create", way.written, way.within)
    if may_write and (reason := way.is_left_out(actor)):
        for cell in cells:
            cell.fate, cell.refusal = Fate.NOT_APPLICABLE, reason
        return
    for number, cell in enumerate(cells):
        if may_write or not number:
            way.prepare(at, cell)
            await way.ask(at, cell)
        else:
            cell.fate, cell.refusal = Fate.NO_RIGHT, cells[0].refusal
    assert may_write or cells[0].refusal, f"{cells[0]} was written without the right to"


def _cells(at: Place, way: Way, number: int, who: Iterable[Actor]) -> Iterable[Cell]:
    count = 0
    for actor in who:
        for effect in effects():
            for namespace in at.namespaces_of(effect):
                for verb in way.verbs:
                    count += 1
                    yield Cell(way.name, actor, verb, effect, namespace, f"c{number}-{count}")


async def _fate(at: Place, way: Way, cell: Cell) -> Fate:
    if cell.refusal:
        return Fate.REFUSED
    if not way.happened(at, cell):
        return Fate.NOTHING
    return Fate.ALLOWED if await way.may(at, cell) else Fate.WRONG


def told(cells: Sequence[Cell]) -> str:
    """Return the counts of a matrix as lines: in all, by way, by actor."""
    lines = [f"{len(cells)} cells: {_counts(cells)}"]
    lines += [f"  {fate.name.lower()}: {fate.value}" for fate in Fate]
    reasons = Counter(cell.refusal for cell in cells if cell.fate is Fate.NOT_APPLICABLE)
    lines += [f"  {count} not applicable: {reason}" for reason, count in reasons.most_common()]
    for by in ("way", "actor"):
        names = dict.fromkeys(_by(cell, by) for cell in cells)
        lines += [f"  {name}: {_counts([cell for cell in cells if _by(cell, by) == name])}" for name in names]  # fmt: skip
    return "\n".join(lines)


def _by(cell: Cell, by: str) -> str:
    return cell.way if by == "way" else cell.actor.name


def _counts(cells: Sequence[Cell]) -> str:
    counts = Counter(cell.fate for cell in cells)
    return ", ".join(f"{counts[fate]} {fate.name.lower()}" for fate in Fate if counts[fate])
