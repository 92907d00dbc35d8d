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
    from collections.abc import Iterator

    import pytest

    Rows = list[tuple[int, dict[str, Any]]]

HERE = Path(__file__).parent
NAMES = ("rule", "result", "message")


def verdicts(table: str, place: Path, capsys: pytest.CaptureFixture[str]) -> dict[int, str | None]:
    """Return what differs by the number of a row, None where nothing does."""
    found: dict[int, str | None] = {}
    for policy, rows in _runs(table):
        found |= _compared(policy, rows, place, capsys)
    return found


def _runs(table: str) -> Iterator[tuple[dict[str, Any], Rows]]:
    """Yield each policy with its rows, which stand together; one that generates with a row at a time."""
    numbered = enumerate(whole.rows(table))
    for (_, policy, _), rows in groupby(numbered, key=_run_of):
        yield json.loads(policy), list(rows)


def _run_of(numbered: tuple[int, dict[str, Any]]) -> tuple[str, str, int]:
    number, row = numbered
    return row["file"], json.dumps(row["policy"]), number if "generated" in row else -1


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
    left = [one.value for one in load_all(written.read_text())]
    assert "internal error" not in err
    return {
        number: _difference(row, results.get(_name(row["object"]), []), left)
        for number, row in rows
    }


def _name(obj: dict[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("name", ""))


def _difference(
    row: dict[str, Any], results: list[dict[str, Any]], left: list[dict[str, Any]]
) -> str | None:
    wanted = sorted(row["results"], key=lambda one: one["rule"])
    given = sorted(results, key=lambda one: one["rule"])
    if given != wanted:
        return f"{wanted} expected, got {given}"
    expected = row.get("generated", [row["patched"]] if "patched" in row else [])
    written = [one for one in left if "generated" in row or _name(one) == _name(row["object"])]
    return None if written == expected else f"{expected} expected to be written, got {written}"
