"""The policy that a grant or a code is about, told by its identity (`engine.model.kinds.identity`), and what can be asked of it.

`NAME` is a ClusterPolicy, `NAMESPACE/NAME` a Policy, `vpol:NAME` a ValidatingPolicy, `nvpol:NAMESPACE/NAME` one of a namespace, and
so on by the short names of the kinds. Grant policies name policies with wildcards by any of identity, key and name, so that one
who speaks of `no-root` speaks of it in whatever language it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import PolicyError
from engine.lang import wildcard
from engine.match.kinds import parse_kind
from engine.model.kinds import BY_NAME, CEL_GROUP, PolicyKind, is_of_cel, named
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .model import Grant

ALL_RULES = ("*",)
_WHOLE = ("",)
"""The rules of a policy written in CEL: it is one, and has no name."""


@record
class Refusal:
    """One reason against a request: the limit, and the next possible step."""

    message: str
    help: str = ""

    def __str__(self) -> str:
        return f"refused: {self.message}" + (f"; {self.help}" if self.help else "")


def names_of(policy: str) -> tuple[str, ...]:
    """Return what a grant policy may call a policy: its identity, its key, its name."""
    key = policy.rpartition(":")[2]
    return (policy, key, key.rpartition("/")[2])


def rules_of(policy: str, rules: Iterable[str]) -> tuple[str, ...]:
    """Return the rules that a grant policy has to let be asked for, by their names."""
    return _WHOLE if is_of_cel(policy) else tuple(rules) or ALL_RULES


def subject_text(policy: str, rules: Iterable[str]) -> str:
    """Return policy and rules as people write them: `POLICY/RULE,RULE`, and a policy written in CEL alone."""
    return policy if is_of_cel(policy) else f"{policy}/{','.join(rules) or '*'}"


def reference_of(policy: str) -> tuple[str, str]:
    """Return name and kind by which exceptions refer to a policy written in CEL; raises PolicyError where it is none."""
    kind, key = named(policy)
    return key.rpartition("/")[2], kind.kind


def identity_of(name: str, kind: str, namespace: str) -> str:
    """Return the identity of the policy that an exception of a namespace refers to by name and kind (row X-22b)."""
    known = BY_NAME.get(kind)
    if known is None or known.group != CEL_GROUP:
        return name
    return f"{known.short}:{namespace}/{name}" if known.is_namespaced else f"{known.short}:{name}"


def subject_refusals(grant: Grant) -> Iterator[Refusal]:
    """Yield what keeps a grant from meaning anything, whatever a grant policy lets."""
    try:
        kind, key = named(grant.policy)
    except PolicyError as error:
        yield Refusal(error.message, error.help)
        return
    if kind.is_namespaced and not wildcard.has_wildcard(key) and key.partition("/")[0] != grant.namespace:  # fmt: skip
        yield Refusal(
            f"{kind.kind} `{key}` concerns what is in its own namespace",
            f"ask with -n {key.partition('/')[0]}",
        )
    if kind.is_cel:
        yield from _of_cel(grant, kind)


def _of_cel(grant: Grant, kind: PolicyKind) -> Iterator[Refusal]:
    if wildcard.has_wildcard(grant.policy):
        yield Refusal("exceptions name policies written in CEL exactly", "leave out the wildcard")
    if grant.rules not in ((), ALL_RULES):
        yield Refusal(
            f"`{grant.policy}` is one rule, which has no name", f"ask for {grant.policy} alone"
        )
    if parse_kind(grant.kind).subresource:
        yield Refusal(
            f"`{grant.kind}` is a part of an object, and policies written in CEL are excepted for whole ones",
            "name the kind of the object",
        )
    if grant.uses and not kind.family.refuses:
        yield Refusal(
            f"a {kind.kind} refuses no requests, so that nobody could count {grant.uses} uses",
            "ask without --uses",
        )
