"""What a denied request would need codes for: one claim for each policy that blocks it, bound to everything about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import Client, Clock, NotFound
from controllers.kube.kinds import CODE_CLAIMS, NAMESPACES
from controllers.store.namespaces import uid_of
from controllers.store.policies import content_hash
from engine.codes import Binding, body_digest, parts_read, violation_of
from engine.lang import rfc3339
from engine.model import Json, Object, Review, RuleResult, Status

from .recent import Recent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping, Sequence

    from controllers.kube.reflector import Informers
    from controllers.kube.store import Store
    from controllers.runtime.cluster_cache import ClusterCache
    from controllers.runtime.policy_cache import Snapshot
    from controllers.store.namespaces import Namespaces

CLUSTER_NAMESPACE = "kube-system"
OPERATIONS = frozenset({"CREATE", "UPDATE"})
_MOST_KNOWN: Final = 1024
"""Sets of rules that are remembered: which of them a request misses is for whoever sends it to choose."""


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
    """UIDs of the cluster, which is remembered, and of namespaces."""

    def __init__(self, client: Client, namespaces: Namespaces) -> None:
        self._client, self._namespaces = client, namespaces
        self._cluster = ""

    async def cluster(self) -> str:
        """Return the UID of the cluster; raises KubeError."""
        if not self._cluster:
            self._cluster = await self.namespace(CLUSTER_NAMESPACE)
        return self._cluster

    async def namespace(self, name: str, *, as_seen: bool = False) -> str:
        """Return the UID of a namespace, nothing for none; `as_seen` the one that was watched last. Raises KubeError."""
        if not name:
            return ""
        seen = self._namespaces.uid(name) if as_seen else ""
        return seen or uid_of(await self._client.get(NAMESPACES, name))


@dataclass(frozen=True, slots=True)
class _OfPolicy:
    """What a policy contributes to the binding of a code for some of its rules, whatever the object."""

    uid: str
    hash: str
    rules: tuple[str, ...]
    read: tuple[str, ...]


class CodeBindings:
    """Binds codes for denied requests; what policies contribute is worked out once and kept while all stay as they are."""

    def __init__(self, cache: ClusterCache, client: Client) -> None:
        self._cache = cache
        self._places = Places(client, cache.namespaces)
        self._snapshot: Snapshot | None = None
        self._known: dict[tuple[str, frozenset[str]], _OfPolicy] = {}

    async def of(
        self,
        review: Review,
        request: Mapping[str, Any],
        blocking: Mapping[str, Sequence[RuleResult]],
        *,
        as_seen: bool,
    ) -> list[CodeBinding]:
        """Return a claim for each policy that blocks; raises KubeError, and KeyError for a policy that is gone meanwhile.

        With `as_seen` the namespace may be the one before one of the same name: enough for an offer, and not for what is brought.
        """
        snapshot = self._cache.policies.snapshot
        uids = (
            await self._places.cluster(),
            await self._places.namespace(review.namespace, as_seen=as_seen),
        )
        return [
            CodeBinding(
                policy=key,
                rules=rules_named(results),
                binding=_binding(
                    review, request, results, self._of_policy(snapshot, key, results), uids
                ),
            )
            for key, results in blocking.items()
        ]

    def _of_policy(self, snapshot: Snapshot, key: str, results: Sequence[RuleResult]) -> _OfPolicy:
        if snapshot is not self._snapshot or len(self._known) >= _MOST_KNOWN:
            self._snapshot, self._known = snapshot, {}
        names = frozenset([one.rule for one in results])
        found = self._known.get((key, names))
        if found is None:
            compiled = snapshot.compiled[key]
            raw = compiled.policy.raw
            missed = [one.rule for one in compiled.rules if one.rule.name in names]
            found = _OfPolicy(
                uid_of(raw), content_hash(raw), tuple(sorted(names)), parts_read(missed)
            )
            self._known[key, names] = found
        return found


def _binding(
    review: Review,
    request: Mapping[str, Any],
    results: Sequence[RuleResult],
    policy: _OfPolicy,
    uids: tuple[str, str],
) -> Binding:
    resource = request.get("resource") or {}
    return Binding(
        cluster=uids[0],
        policy_uid=policy.uid,
        policy_hash=policy.hash,
        rules=policy.rules,
        violation=violation_of(
            review.object or {}, {(one.rule, one.path) for one in results}, policy.read
        ),
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
SEEN_FOR: Final = 10.0
"""Seconds after which claims are listed although the watch shows none, so that one that fell silent keeps nobody from theirs for longer."""
MOST_CLAIMS: Final = 20
MOST_CODES: Final = 8


class CodeClaims:
    """The claims in the cluster; those about objects without a namespace are in the engine's own.

    With `informers` they are watched from the first question on, so that who has none costs no list each time. What counts is
    always a list: one that is as old as `SEEN_FOR` where the watch shows nothing, else a new one.
    """

    def __init__(
        self, client: Client, clock: Clock, namespace: str, informers: Informers | None = None
    ) -> None:
        self._client, self._clock = client, clock
        self._namespace, self._informers = namespace, informers
        self._seen: Store | None = None
        self._none: Recent[frozenset[str]] = Recent(clock, lambda uses: 0.0 if uses else SEEN_FOR)

    async def of(self, user: str, groups: tuple[str, ...], namespace: str) -> frozenset[str]:
        """Return the names of uses that a user, with exactly these groups, claims for objects in a namespace; raises KubeError."""
        place = namespace or self._namespace

        def ask() -> Awaitable[frozenset[str]]:
            return self._listed(user, groups, place)

        if self._is_seen_without(user, place):
            return await self._none.of("\n".join((place, user, *groups)), ask)
        return await ask()

    async def _listed(self, user: str, groups: tuple[str, ...], namespace: str) -> frozenset[str]:
        try:
            page = await self._client.list_all(CODE_CLAIMS, namespace)
        except NotFound:
            return frozenset()
        now, own = self._clock.now(), []
        for one in page.items:
            spec, metadata = one.get("spec") or {}, one["metadata"]
            created = rfc3339.read(str(metadata.get("creationTimestamp") or ""))
            is_own = spec.get("user") == user and {*(spec.get("groups") or ())} == {*groups}
            if is_own and created is not None and now < created + LONGEST:
                own.append((created, spec.get("uses") or []))
        newest = sorted(own, key=lambda one: one[0], reverse=True)[:MOST_CLAIMS]
        return frozenset(str(name) for _, names in newest for name in names[:MOST_CODES])

    def _is_seen_without(self, user: str, namespace: str) -> bool:
        """Tell whether the watch shows no claim of a user's in a namespace; while it does not go well nobody knows."""
        if self._informers is None:
            return False
        if self._seen is None:
            self._seen = self._informers.acquire(CODE_CLAIMS, reduce=_claimant)
        return self._informers.is_current(CODE_CLAIMS) and not any(
            one["spec"]["user"] == user for one in self._seen.in_namespace(namespace)
        )


def _claimant(claim: Object) -> Object:
    """Return what is kept of a claim that is watched: where it is, and whose."""
    metadata = claim.get("metadata") or {}
    kept = {key: metadata.get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
    return {"metadata": kept, "spec": {"user": (claim.get("spec") or {}).get("user")}}
