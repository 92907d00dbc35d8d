"""The objects of a cluster that policies look at: which kinds, which namespaces, which names (row K-02)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.evaluate import PolicySet

from .names import identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Object

    from .documents import Loaded
    from .outside import Outside


def live_objects(
    outside: Outside, loaded: Loaded, *, namespace: str, named: Sequence[str], wide: bool
) -> list[Object]:
    """Return the objects that policies or cleanup policies can match, sorted; what cannot be listed becomes a problem.

    With a namespace those of that namespace, and where it is `wide` those that live in none as well.
    """
    policies = PolicySet.compile(loaded.policies, ())
    cleaned = {kind for policy in loaded.cleanups for kind in _kinds_of(policy.match)}

    def is_wanted(kind: str) -> bool:
        return bool(policies.for_kind(kind)) or kind in cleaned or "*" in cleaned

    found = outside.objects(
        is_wanted,
        namespace=namespace,
        names=named,
        wide=wide or not namespace,
    )
    loaded.problems.extend(outside.problems)
    return sorted(found, key=identity)


def _kinds_of(block: object) -> list[str]:
    """Return the kinds that a match block names, without group and version; one with a wildcard counts as all."""
    found: list[str] = []
    if isinstance(block, dict):
        for key, value in block.items():
            if key == "kinds" and isinstance(value, list):
                names = (str(one).rpartition("/")[2] for one in value)
                found += ["*" if "*" in name or "?" in name else name for name in names]
            else:
                found += _kinds_of(value)
    elif isinstance(block, list):
        for one in block:
            found += _kinds_of(one)
    return found
