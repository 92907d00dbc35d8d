"""What no policy may touch, and how far a policy of one namespace reaches.

The rule of effects: an effect that we have on a cluster is never larger than what the person or policy author behind it may
do himself, and none happens on the word of a caller that nobody authenticated.

Our accounts act for everybody, so what holds back an author elsewhere, his own rights, does not hold back a rule of his. Two
things do. When a policy is written, the API server is asked whether its author may do what its rules will do. And some
targets are out of reach whatever rights there are: of every policy, because exceptions by grant, our own kinds and our
guards are decided about by people; of a namespaced policy, because its author was given one namespace. The second is decided
here and nowhere else, for whoever checks a policy, looks something up, changes or deletes an object, or tells the API server
which requests to bring to us.

Validating is no effect on an object: policies of the cluster may refuse what they may not touch.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from engine import vocabulary
from engine.fields import part
from engine.model.resources import CLUSTER_SCOPED
from engine.record import record

if TYPE_CHECKING:
    from engine.model import Object


OWN_GROUP: Final = "kpolicy.io"
REPORT_GROUPS: Final = frozenset({"reports.kyverno.io", "wgpolicyk8s.io", "openreports.io"})
ADMISSION_GROUP: Final = "admissionregistration.k8s.io"
POLICY_GROUPS: Final = frozenset({"kyverno.io", "policies.kyverno.io"})
"""Where policies, clean-up policies, exceptions and the requests that policies make are kept."""

GUARDED_GROUPS: Final = POLICY_GROUPS | {OWN_GROUP, ADMISSION_GROUP}
"""The groups in which anything may be out of reach; a policy of a namespace has nothing to do with them."""

EXCEPTION_KIND: Final = "PolicyException"


class Effect(Enum):
    """What a policy, or a label, has us do with an object; the value is the verb for messages."""

    GENERATE = "generate"
    CLONE = "copy"
    MUTATE = "mutate"
    MUTATE_EXISTING = "change"
    CLEAN_UP = "clean up"
    EXPIRE = "expire"
    LOOK_UP = "read"


@record
class Target:
    """An object or objects that something is to happen to; None stands for what is not known (yet).

    `objects` are the states of it that are at hand: as it was, as it is to be.
    """

    group: str | None = None
    kind: str = ""
    is_namespaced: bool | None = None
    namespace: str | None = None
    name: str = ""
    objects: tuple[Object, ...] = ()


def target_of(*states: Object, is_namespaced: bool | None = None) -> Target:
    """Return the target that an object is, of which the last state says where it lies."""
    obj = states[-1]
    metadata = part(obj, "metadata")
    return Target(
        group=str(obj.get("apiVersion") or "").rpartition("/")[0],
        kind=str(obj.get("kind") or ""),
        is_namespaced=is_namespaced,
        namespace=str(metadata.get("namespace") or ""),
        name=str(metadata.get("name") or ""),
        objects=states,
    )


def out_of_reach(effect: Effect, target: Target, within: str = "") -> str | None:
    """Return why an effect must not happen, None where nothing is known against it.

    `within` is the namespace of the policy, empty for one of the cluster. What is not known of a target yet is asked about
    again when it is.
    """
    if effect is not Effect.LOOK_UP and (found := _of_nobody(target)):
        return f"no policy may {effect.value} {found}"
    if within and (found := _outside(effect, target, within)):
        return f"a policy of namespace `{within}` may not {effect.value} {found}"
    return None


def is_granted(obj: Object) -> bool:
    """Tell whether an exception, of either group, carries a grant."""
    metadata = part(obj, "metadata")
    return vocabulary.GRANT in part(metadata, "annotations") or any(
        str(part(owner).get("apiVersion") or "").startswith(f"{OWN_GROUP}/")
        for owner in metadata.get("ownerReferences") or ()
    )


def _of_nobody(target: Target) -> str | None:
    """Return what is out of every policy's reach about a target, None where nothing is."""
    group, kind = target.group, target.kind
    if group == OWN_GROUP:
        return f"objects of {OWN_GROUP}"
    if group in POLICY_GROUPS and kind == "UpdateRequest":
        return f"objects of kind {kind}"
    if group in POLICY_GROUPS and kind == EXCEPTION_KIND and any(map(is_granted, target.objects)):
        return "an exception that carries a grant"
    if group == ADMISSION_GROUP and _is_our_configuration(target):
        return f"{kind or 'an object'} `{target.name}`, which guards what people decide"
    return None


def _is_our_configuration(target: Target) -> bool:
    name = target.name
    is_of_upstream = name.startswith("kyverno-") and name.endswith("-webhook-cfg")
    is_marked = any(
        vocabulary.OWNER in part(obj, "metadata", "annotations") for obj in target.objects
    )
    return is_of_upstream or name.startswith("kpolicy-") or is_marked


def _outside(effect: Effect, target: Target, within: str) -> str | None:
    """Return what lies outside a namespaced policy's reach about a target, None where nothing does."""
    group, kind = target.group, target.kind
    if group in GUARDED_GROUPS:
        return f"policies, exceptions or configurations of admission, as `{kind or group}` is"
    if _is_cluster_scoped(target):
        is_own = (group, kind, target.name) == ("", "Namespace", within)
        is_allowed = effect is Effect.LOOK_UP and is_own
        return None if is_allowed else f"`{kind}`, which is of no namespace"
    if target.namespace is not None and target.namespace != within:
        place = f"of namespace `{target.namespace}`" if target.namespace else "of all namespaces"
        return f"objects {place}"
    return None


def _is_cluster_scoped(target: Target) -> bool:
    if target.is_namespaced is not None:
        return not target.is_namespaced
    return target.kind in CLUSTER_SCOPED and target.group in (None, CLUSTER_SCOPED[target.kind])
