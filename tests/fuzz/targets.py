"""All targets by name."""

from __future__ import annotations

from typing import Final

from tests.fuzz import bundles, objects, reviews, texts

TARGETS: Final = {
    one.name: one for one in (*reviews.TARGETS, *texts.TARGETS, *objects.TARGETS, *bundles.TARGETS)
}
