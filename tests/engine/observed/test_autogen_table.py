"""The observed autogen table: rules computed for pod controllers, compared as documents."""

from __future__ import annotations

from typing import Any

from engine.autogen import expand
from engine.parse import parse_policy
from tests.engine.observed.match_table import assert_only_listed_rows_differ, observed_rows

GO_DEFAULTS: dict[str, Any] = {
    "clone": {},
    "cloneList": {},
    "mutateDigest": False,
    "required": False,
    "resources": {},
    "useCache": False,
    "validate": {},
    "verifyDigest": False,
}
"""What Go's serialisation adds to the observed rules although nobody wrote it."""


def normal(value: Any) -> Any:
    """Drop Go's defaults and the order of kinds."""
    if isinstance(value, list):
        return [normal(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: normal(item)
        for key, item in value.items()
        if key not in GO_DEFAULTS or item != GO_DEFAULTS[key]
    }
    return {key: sorted(item) if key == "kinds" else item for key, item in kept.items()}


def test_generated_rules_equal_the_observed_ones() -> None:
    rows = observed_rows("autogen")
    differing = {}
    for number, row in enumerate(rows):
        rules = [normal(dict(rule.raw)) for rule in expand(parse_policy(row["policy"]))]
        if rules != [normal(rule) for rule in row["rules"]]:
            differing[number] = str(rules)

    assert len(rows) >= 60
    assert_only_listed_rows_differ("autogen", differing, len(rows))
