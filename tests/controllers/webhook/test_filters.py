"""What is never put before policies, so that none of them undoes what people decided about exceptions."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.kube import Discovery
from controllers.runtime.cluster_cache import ClusterCache
from controllers.runtime.metrics import Metrics
from controllers.webhook.sorts import filter_of
from engine.model import Review
from tests.controllers.kube.fake import FakeClient

GRANTED = {
    "metadata": {"name": "e", "namespace": "shop", "annotations": {"kpolicy.io/grant": "shop/g"}}
}
PLAIN = {"metadata": {"name": "e", "namespace": "shop"}}


def filtered(group: str, kind: str, operation: str, **fields: Any) -> bool:
    review = Review(group=group, kind=kind, operation=operation, **{"object": None, **fields})
    cache = ClusterCache(Discovery(FakeClient()), Metrics())
    found = filter_of(cache, review, "shop")
    return found if isinstance(found, bool) else found(review, {"name": "e"})


@pytest.mark.parametrize("group", ["kyverno.io", "policies.kyverno.io"])
def test_no_policy_refuses_the_end_of_an_exception_by_grant(group: str) -> None:
    assert filtered(group, "PolicyException", "DELETE", old_object=GRANTED)
    assert not filtered(group, "PolicyException", "DELETE", old_object=PLAIN)
    assert not filtered(group, "PolicyException", "UPDATE", object=GRANTED, old_object=GRANTED)
    assert not filtered(group, "PolicyException", "CREATE", object=GRANTED)


def test_no_policy_refuses_what_the_controllers_say_about_grants_and_codes() -> None:
    for kind in ("Grant", "OneTimeCode", "CodeUse"):
        assert filtered("kpolicy.io", kind, "UPDATE", subresource="status", object=PLAIN)
    for kind in ("Grant", "GrantPolicy", "OneTimeCode"):
        assert not filtered("kpolicy.io", kind, "UPDATE", object=PLAIN, old_object=PLAIN)
