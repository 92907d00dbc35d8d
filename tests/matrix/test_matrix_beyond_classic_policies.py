"""The matrix by policies in CEL, and past policies: by forged reviews, codes and grants. A file of its own, so that two processes share the work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.conftest import COUNTED
from tests.matrix import ways_past
from tests.matrix.playing import told
from tests.matrix.rounds import by_path, hold, played
from tests.matrix.ways_of_cel import WAYS_OF_CEL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("uncollected_heap")
def test_nobody_gets_through_policies_in_cel_or_past_policies_what_he_may_not_do_himself(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    codes = ways_past.Code("")
    ways = (*WAYS_OF_CEL, ways_past.ForgedReview("certificate"), codes)
    cells = asyncio.run(played(tmp_path / "a", ways, grants=("", "ValidatingPolicy")))
    cells += asyncio.run(by_path(tmp_path / "b"))

    record_property(COUNTED, told(cells))
    hold(cells, (*WAYS_OF_CEL, codes))
