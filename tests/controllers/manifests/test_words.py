"""Every field of our own kinds says what it means to `kubectl explain`."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.manifests.crds import definition
from controllers.manifests.crds.native import KINDS

_OBVIOUS = {
    "apiVersion",
    "kind",
    "name",
    "namespace",
    "uid",
    "selector",
    "metadata",
    "spec",
    "status",
}


def silent(schema: dict[str, Any], path: str = "") -> list[str]:
    """Return the paths of fields that say nothing."""
    found = []
    for name, field in (schema.get("properties") or {}).items():
        place = f"{path}.{name}"
        if name not in _OBVIOUS and "description" not in field:
            found.append(place)
        found += silent(field, place)
    return found + (silent(schema["items"], f"{path}[]") if "items" in schema else [])


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.kind)
def test_every_field_of_our_own_kinds_is_explained(kind):
    [version] = definition(kind)["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    assert silent(schema) == []
    assert schema["description"].endswith(".")
    assert schema["description"] != f"{kind.kind} of {kind.group}."
