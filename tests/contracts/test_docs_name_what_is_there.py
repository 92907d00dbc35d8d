"""What the pages of docs/ name in code is in the tree, so that a page never sends a reader to a place that is gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.mutation.__main__ import ROOMS

ROOT = Path(__file__).parents[2]
PAGES = (
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "README.md",
)
_PATH = re.compile(r"`((?:engine|controllers|kubectl_kpolicy|tests|docs)/[\w./-]*)`")
_LINK = re.compile(r"\]\((?!https?:)([\w./-]+?)(?:#[\w-]*)?\)")
_PACKAGES = ("controllers", "engine", "kubectl_kpolicy", "tests")
_MODULE = re.compile(r"(?<![\w./-])((?:\w+/)*\w+\.py)\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_is_there(page: Path) -> None:
    named = set(_PATH.findall(page.read_text()))
    assert not sorted(one for one in named if not (ROOT / one).exists())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    linked = set(_LINK.findall(page.read_text()))
    assert not sorted(one for one in linked if not (page.parent / one).exists())


def test_every_module_in_the_drawings_is_there() -> None:
    named = set(_MODULE.findall((ROOT / "docs" / "architecture.md").read_text()))
    assert len(named) > 20, "the drawings name no modules any more"
    there = [f"/{path.relative_to(ROOT)}" for package in _PACKAGES for path in (ROOT / package).rglob("*.py")]  # fmt: skip
    assert not sorted(one for one in named if not any(path.endswith(f"/{one}") for path in there))


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_and_test_of_a_room_of_mutants_is_there(room: str) -> None:
    named = [one for part in ROOMS[room].parts for one in (*part.modules, *part.tests)]
    assert not sorted(one for one in named if not (ROOT / one).exists())
