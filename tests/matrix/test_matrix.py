"""The matrix: no effect passes through us that its actor could not have had himself, by classic policies."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.conftest import COUNTED
from tests.matrix.actors import FOREIGN, OWN
from tests.matrix.effects import BODIES, effects, written_kinds
from tests.matrix.playing import told
from tests.matrix.rounds import hold, played
from tests.matrix.ways import WAYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("uncollected_heap")
def test_nobody_gets_through_classic_policies_what_he_may_not_do_himself(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    cells = asyncio.run(played(tmp_path, WAYS))

    record_property(COUNTED, told(cells))
    hold(cells, WAYS)


def test_every_kind_that_our_accounts_may_write_has_a_body_that_is_tried() -> None:
    tried = {(one.group, one.plural) for one in effects()}

    assert tried == written_kinds()
    assert {("kyverno.io", "policyexceptions"), ("", "configmaps")} <= tried
    assert tried <= {key[:2] for key in BODIES}
    assert OWN != FOREIGN
