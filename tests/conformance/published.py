"""Where the published test cases are, and how a row is recognised among them."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[2]


@cache
def folder() -> Path:
    """Return the folder of the published cases, or skip the test that asks."""
    candidates = [os.environ.get("KPOLICY_CONFORMANCE")]
    if shared := os.environ.get("KPOLICY_SHARED"):
        candidates.append(f"{shared}/conformance")
    candidates.append(str(REPO.parent / "shared" / "conformance"))
    for candidate in filter(None, candidates):
        if (Path(candidate) / "index.json").is_file():
            return Path(candidate)
    pytest.skip("published test cases are absent; set KPOLICY_CONFORMANCE to their folder")


@cache
def index() -> list[dict[str, Any]]:
    return json.loads((folder() / "index.json").read_text())


def classic_cases() -> list[dict[str, Any]]:
    """Return the cases of classic policies whose rules are not CEL expressions."""
    return [
        case
        for case in index()
        if case["class"] == "classic-offline" and not any("cel" in rule for rule in case["rules"])
    ]


def cases_with_cel_rules() -> list[dict[str, Any]]:
    """Return the cases of classic policies whose rules are CEL expressions."""
    return [
        case
        for case in index()
        if case["class"] == "classic-offline" and any("cel" in rule for rule in case["rules"])
    ]


def cases_of_kinds(*kinds: str, only: str = "") -> list[dict[str, Any]]:
    """Return the cases whose policies and exceptions are of these kinds and no others, classic ones left aside.

    With `only`, those among them that have this kind.
    """
    return [
        case
        for case in index()
        if case["class"] != "classic-offline"
        and set(case["kinds"]) <= set(kinds)
        and only in ("", *case["kinds"])
    ]


def file_and_number(case: dict[str, Any]) -> tuple[Path, int]:
    """Return the file of a case, and which of its documents it is."""
    file, _, number = case["file"].partition("#")
    return folder() / file, int(number or 0)


@cache
def unanswered() -> frozenset[tuple[str, str, str, str]]:
    """Return file, policy, rule and resource of the rows that upstream's own CLI leaves unanswered."""
    listed = json.loads((folder() / "upstream-no-answer.json").read_text())
    return frozenset(
        (item["file"], item["policy"], item["rule"], _shown(item["resource"]))
        for item in listed
        if item["resource"]
    )


def _shown(resource: str) -> str:
    *_, kind, namespace, name = resource.split("/")
    return f"{namespace}/{kind}/{name}"


def is_excused(file: str, row: dict[str, Any]) -> bool:
    """Return whether no answer is a right answer for a row, because upstream's CLI gives none either."""
    key = (file, row["policy"], row["rule"], row["resource"])
    return row["actual"] is None and key in unanswered()
