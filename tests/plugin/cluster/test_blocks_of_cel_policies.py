"""Blocks: denials by policies written in CEL, whose Events name no rule."""

from __future__ import annotations

from kubectl_kpolicy.cluster.blocks import block_rows
from tests.plugin.scene import NOW, block, world


def test_a_denial_by_a_policy_without_rules_is_a_row() -> None:
    event = block("x.1", 1, 2, "Pod shop/web: fail (blocked); a team is needed", "team")
    event["involvedObject"] = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "NamespacedValidatingPolicy",
        "name": "team",
        "namespace": "shop",
    }
    [row] = block_rows(world({"events": [event]}), NOW)

    assert (row.cells["policy"], row.cells["rule"]) == ("shop/team", "")
    assert (row.cells["resource"], row.cells["message"]) == ("Pod/web", "a team is needed")
