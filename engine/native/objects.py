"""What native policies are called, whose they are, and how the API server stores them (rows NG-01, NG-04)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine import vocabulary
from engine.errors import EngineError
from engine.fields import part
from engine.model.kinds import BY_NAME, CEL_GROUP
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from engine.model import Block, Json, Object, Policy

VALIDATING: Final = "ValidatingAdmissionPolicy"
MUTATING: Final = "MutatingAdmissionPolicy"
NATIVE_KINDS: Final[Mapping[str, str]] = {
    "ClusterPolicy": VALIDATING,
    "ValidatingPolicy": VALIDATING,
    "MutatingPolicy": MUTATING,
}
"""The kinds of policies that there may be native ones for, and of which kind those are."""

LABELS: Final = vocabulary.BY_KYVERNO
_SWITCHES: Final = {VALIDATING: "validatingAdmissionPolicy", MUTATING: "mutatingAdmissionPolicy"}
_CEL_VERSION: Final = f"{CEL_GROUP}/v1beta1"


class NotNative(EngineError):  # noqa: N818 - it names the verdict
    """No native policy stands for a policy; `until` is when that may be otherwise, if it is known."""

    until: datetime | None = None


def skipped(kind: str, why: str, until: datetime | None = None) -> NotNative:
    """Return why a native policy of `kind` is not made, in upstream's words as far as upstream has them."""
    made = NotNative(f"skip generating {kind}{why}")
    made.until = until
    return made


@record
class Documents:
    """A native policy and its binding, without `apiVersion`: that is whichever the server has."""

    policy: Object
    binding: Object


def kind_for(policy: Policy) -> str:
    """Return the kind of the native policies of a kind, empty where there are none."""
    return NATIVE_KINDS.get(policy.kind, "")


def name_for(policy: Policy) -> str:
    """Return what the native policy of a policy is called."""
    return f"{BY_NAME[policy.kind].short}-{policy.name}"


def names_of(policy: Policy) -> tuple[tuple[str, str], ...]:
    """Return kind and name of everything that is made for a policy."""
    kind, name = kind_for(policy), name_for(policy)
    return ((kind, name), (f"{kind}Binding", f"{name}-binding"))


def asks_for_native(policy: Policy) -> bool:
    """Tell whether a policy asks for a native one, whether or not it can have one (rows NG-02, NG-11)."""
    kind = kind_for(policy)
    if not kind:
        return False
    if not BY_NAME[policy.kind].is_cel:
        block = part((policy.rules[0].validate or {}).get("cel")) if policy.rules else {}
        return len(policy.rules) == 1 and block.get("generate") is True
    autogen = part(policy.raw, "spec", "autogen")
    return part(autogen.get(_SWITCHES[kind])).get("enabled") is True


def is_made_from(obj: Object, policy: Policy) -> bool:
    """Tell whether a native object was made for a policy, and not by somebody under that name."""
    metadata = part(obj, "metadata")
    return part(metadata, "labels").items() >= LABELS.items() and any(
        (owner.get("kind"), owner.get("name")) == (policy.kind, policy.name)
        for owner in metadata.get("ownerReferences") or ()
    )


def documents(policy: Policy, spec: Block, binding: Block) -> Documents:
    """Return the native policy and its binding with these specs, owned by the policy that they stand for."""
    (kind, name), (binding_kind, binding_name) = names_of(policy)
    unreported = policy.labels.get(vocabulary.UNREPORTED)
    labels = {**LABELS, **({vocabulary.UNREPORTED: unreported} if unreported is not None else {})}
    owners = [_owner(policy)]
    return Documents(
        policy={
            "kind": kind,
            "metadata": {"name": name, "labels": labels, "ownerReferences": owners},
            "spec": spec,
        },
        binding={
            "kind": binding_kind,
            "metadata": {"name": binding_name, "labels": LABELS, "ownerReferences": owners},
            "spec": {"policyName": name, **binding},
        },
    )


def constraints(block: Block) -> dict[str, Any]:
    """Return match constraints with everything said that the API server would fill in."""
    made: dict[str, Any] = {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        **{key: value for key, value in block.items() if value is not None},
    }
    for name in ("resourceRules", "excludeResourceRules"):
        if rules := made.pop(name, None):
            made[name] = [{"scope": "*", **rule} for rule in rules]
    return made


def given(block: Block, names: Iterable[str]) -> dict[str, Json]:
    """Return the parts of a block that say something."""
    return {name: block[name] for name in names if block.get(name)}


def _owner(policy: Policy) -> dict[str, Json]:
    metadata = part(policy.raw, "metadata")
    version = _CEL_VERSION if BY_NAME[policy.kind].is_cel else "kyverno.io/v1"
    return {
        "apiVersion": version,
        "kind": policy.kind,
        "name": policy.name,
        "uid": metadata.get("uid"),
    }
