"""Replays rows of an observed table through `apply`, as they were made: the objects of a policy in one run, reports and `-o`."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.lang.yaml import load_all
from kubectl_kpolicy.entry import main
from tests.engine.observed import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

    Rows = list[tuple[int, dict[str, Any]]]

HERE = Path(__file__).parent
NAMES = ("rule", "result", "message")


def verdicts(
    table: str,
    place: Path,
    capsys: pytest.CaptureFixture[str],
    asked: Callable[[dict[str, Any]], bool] = lambda policy: True,
) -> dict[int, str | None]:
    """Return what differs by the number of a row (None where nothing does), of the policies that are `asked`."""
    found: dict[int, str | None] = {}
    for policy, rows in _runs(table):
        if asked(policy):
            found |= _compared(policy, rows, place, capsys)
    return found


def _runs(table: str) -> Iterator[tuple[dict[str, Any], Rows]]:
    """Yield each policy with its rows; they stand together."""
    numbered = enumerate(whole.rows(table))
    for _, rows in groupby(
        numbered, key=lambda one: (one[1]["file"], json.dumps(one[1]["policy"]))
    ):
        listed = list(rows)
        yield listed[0][1]["policy"], listed


def _compared(
    policy: dict[str, Any], rows: Rows, place: Path, capsys: pytest.CaptureFixture[str]
) -> dict[int, str | None]:
    (place / "p.yaml").write_text(json.dumps(policy))
    objects = (json.dumps(row["object"]) for _, row in rows)
    (place / "o.yaml").write_text("\n---\n".join(objects))
    written = place / "written.yaml"
    main(f"apply {place}/p.yaml -r {place}/o.yaml -o {written} -p".split())
    out, err = capsys.readouterr()
    results: dict[str, list[dict[str, Any]]] = {}
    for document in load_all(out):
        for result in document.value["results"]:
            name = result["resources"][0].get("name", "")
            results.setdefault(name, []).append({key: result.get(key, "") for key in NAMES})
    left = {_name(one.value): one.value for one in load_all(written.read_text())}
    assert "internal error" not in err
    return {
        number: _difference(
            row, results.get(_name(row["object"]), []), left.get(_name(row["object"]))
        )
        for number, row in rows
    }


def _name(obj: dict[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("name", ""))


def _difference(row: dict[str, Any], results: list[dict[str, Any]], left: Any) -> str | None:
    wanted = sorted(row["results"], key=lambda one: one["rule"])
    given = sorted(results, key=lambda one: one["rule"])
    if given != wanted:
        return f"{wanted} expected, got {given}"
    if left != row.get("patched"):
        return f"{row.get('patched')} expected to be written, got {left}"
    return None
