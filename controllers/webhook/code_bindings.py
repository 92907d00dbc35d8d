"""What a denied request would need codes for: one claim for each policy that blocks it, bound to everything about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import Client, NotFound
from controllers.kube.kinds import CODE_CLAIMS, NAMESPACES
from controllers.store.policies import content_hash
from engine.codes import Binding, body_digest, violation_of
from engine.lang import rfc3339
from engine.model import Json, Object, Review, RuleResult, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controllers.runtime.policy_cache import Snapshot
    from engine.evaluate.rules import CompiledPolicy

CLUSTER_NAMESPACE = "kube-system"
OPERATIONS = frozenset({"CREATE", "UPDATE"})


@dataclass(frozen=True, slots=True)
class CodeBinding:
    """A policy (by its identity) that blocks a request with its rules, and what a code for that is bound to.

    One written in CEL is one rule without a name.
    """

    policy: str
    rules: tuple[str, ...]
    binding: Binding


def rules_named(results: Iterable[RuleResult]) -> tuple[str, ...]:
    """Return the rules of one policy that people name; one written in CEL has none, whatever its answers are called."""
    return tuple(sorted({one.rule for one in results if one.rule and not one.is_of_cel}))


def can_carry(review: Review) -> bool:
    """Tell whether a request can carry a code at all: it makes or changes an object as a whole."""
    return (
        review.operation in OPERATIONS
        and not review.subresource
        and isinstance(review.object, dict)
    )


def rules_by_policy(blocking: Sequence[RuleResult]) -> dict[str, list[RuleResult]] | None:
    """Return the results that block by policy; None where one of them is nothing that a code could stand for."""
    found: dict[str, list[RuleResult]] = {}
    for result in blocking:
        if result.status is not Status.FAIL:
            return None
        found.setdefault(result.identity, []).append(result)
    return found or None


class Places:
    """UIDs of the cluster and of namespaces, read when a claim is made; the cluster's is remembered."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cluster = ""

    async def cluster(self) -> str:
        """Return the UID of the cluster; raises KubeError."""
        if not self._cluster:
            self._cluster = await self.namespace(CLUSTER_NAMESPACE)
        return self._cluster

    async def namespace(self, name: str) -> str:
        """Return the UID of a namespace, nothing for none; raises KubeError."""
        if not name:
            return ""
        obj = await self._client.get(NAMESPACES, name)
        return str(obj["metadata"].get("uid") or "")


async def claims_of(
    review: Review,
    request: Mapping[str, Any],
    blocking: Mapping[str, Sequence[RuleResult]],
    snapshot: Snapshot,
    places: Places,
) -> list[CodeBinding]:
    """Return a claim for each policy that blocks; raises KubeError, and KeyError for a policy that is gone meanwhile."""
    obj = review.object
    assert obj is not None, "can_carry was asked"
    cluster, namespace_uid = await places.cluster(), await places.namespace(review.namespace)
    return [
        CodeBinding(
            policy=key,
            rules=rules_named(results),
            binding=_binding(
                review,
                request,
                results,
                snapshot.compiled[key],
                (cluster, namespace_uid),
            ),
        )
        for key, results in blocking.items()
    ]


def _binding(
    review: Review,
    request: Mapping[str, Any],
    results: Iterable[RuleResult],
    compiled: CompiledPolicy,
    uids: tuple[str, str],
) -> Binding:
    obj, resource, policy = review.object or {}, request.get("resource") or {}, compiled.policy.raw
    results = list(results)
    names = {one.rule for one in results}
    rules = [one.rule for one in compiled.rules if one.rule.name in names]
    return Binding(
        cluster=uids[0],
        policy_uid=str((policy.get("metadata") or {}).get("uid") or ""),
        policy_hash=content_hash(policy),
        rules=tuple(sorted(names)),
        violation=violation_of(obj, {(one.rule, one.path) for one in results}, rules),
        group=str(resource.get("group") or ""),
        version=str(resource.get("version") or ""),
        resource=str(resource.get("resource") or ""),
        subresource=review.subresource,
        operation=review.operation,
        namespace=review.namespace,
        namespace_uid=uids[1],
        object_name=_name(review),
        object_uid=_uid(review) if review.operation == "UPDATE" else "",
        username=user_of(request),
        groups=groups_of(request),
    )


def user_of(request: Mapping[str, Any]) -> str:
    """Return who asks, as the API server names them."""
    return str((request.get("userInfo") or {}).get("username") or "")


def groups_of(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the groups of who asks, each once and in one order: the API server keeps none."""
    return tuple(sorted({str(one) for one in (request.get("userInfo") or {}).get("groups") or ()}))


def target_of(review: Review, request: Mapping[str, Json]) -> Object:
    """Return which object a request is about, for its use's record; its name may still be drawn by the API server.

    Of one that is there already it says in which version the request found it.
    """
    obj = review.object or review.old_object or {}
    found = ((review.old_object or {}).get("metadata") or {}).get("resourceVersion")
    return {
        **({"resourceVersion": str(found)} if found else {}),
        "apiVersion": str(obj.get("apiVersion") or ""),
        "kind": str(obj.get("kind") or review.kind),
        "namespace": review.namespace,
        "name": str(review.metadata.get("name") or request.get("name") or ""),
        "uid": _uid(review),
    }


def body_of(review: Review) -> str:
    """Return the digest of what is to be stored."""
    return body_digest(review.object or {})


def _uid(review: Review) -> str:
    return str(review.metadata.get("uid") or "")


def _name(review: Review) -> str:
    """Return the name that a code is bound to: the given beginning where the rest is drawn anew at each attempt (A6)."""
    beginning = str(review.metadata.get("generateName") or "")
    name = str(review.metadata.get("name") or "")
    drawn = review.operation == "CREATE" and beginning and name.startswith(beginning)
    return beginning if drawn or not name else name


# Codes in strict mode: brought by a CodeClaim beside the object and not by the object itself.
#
# Who makes a CodeClaim, and in which groups they are, is pinned by an admission policy of the API server, so that a review which
# somebody else posts to us, in whichever name, can use no code that its owner has not claimed. Therefore strict codes need no
# proof of who calls us. A claim names codes by their uses, from which no code is got back: callers who proved nothing are told
# of uses only. Only codes that denials offer can be claimed.

LONGEST: Final = timedelta(hours=1)
"""How long a claim is looked at after it was made."""
MOST_CLAIMS: Final = 20
MOST_CODES: Final = 8


class CodeClaims:
    """The claims in the cluster; those about objects without a namespace are in the engine's own."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace

    async def of(
        self, user: str, groups: tuple[str, ...], namespace: str, now: datetime
    ) -> frozenset[str]:
        """Return the names of uses that a user, with exactly these groups, claims for objects in a namespace; raises KubeError."""
        try:
            page = await self._client.list_all(CODE_CLAIMS, namespace or self._namespace)
        except NotFound:
            return frozenset()
        own = []
        for one in page.items:
            spec, metadata = one.get("spec") or {}, one["metadata"]
            created = rfc3339.read(str(metadata.get("creationTimestamp") or ""))
            is_own = spec.get("user") == user and {*(spec.get("groups") or ())} == {*groups}
            if is_own and created is not None and now < created + LONGEST:
                own.append((created, spec.get("uses") or []))
        newest = sorted(own, key=lambda one: one[0], reverse=True)[:MOST_CLAIMS]
        return frozenset(str(name) for _, names in newest for name in names[:MOST_CODES])
