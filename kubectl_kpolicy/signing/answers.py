"""How `kubectl kpolicy verify` shows its answers: a line per object, or JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import orjson

from engine.model import Object, Outcome, Status

from .envelope import title

if TYPE_CHECKING:
    from collections.abc import Sequence


def print_answers(outcomes: Sequence[tuple[Object, Outcome]], form: str, out: TextIO) -> int:
    """Print every outcome; return 0 when all objects verified, else 1."""
    if form == "json":
        rows = [
            {
                "object": title(obj),
                "verified": outcome.status is Status.PASS,
                "message": outcome.message,
            }
            for obj, outcome in outcomes
        ]
        print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode(), file=out)
    else:
        for obj, outcome in outcomes:
            word = "verified" if outcome.status is Status.PASS else "not verified"
            print(f"{word}: {title(obj)}: {outcome.message}", file=out)
    return 0 if all(outcome.status is Status.PASS for _, outcome in outcomes) else 1
