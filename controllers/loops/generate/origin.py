"""Where a generated object comes from: rule and trigger, as its labels tell (row U-02).

The labels are the only memory of generation, so that a restart forgets nothing and people can read it, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controllers.store.cel_policies import is_of_cel
from engine.generate.labels import MAX_LABEL, PREFIX, SOURCE_UID
from engine.vocabulary import MANAGED_BY, TRIGGER_UID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.evaluate.rules import CompiledRule
    from engine.model import Object

SELECTOR = f"{MANAGED_BY}=kyverno,{PREFIX}policy-name"
"""What selects all generated objects."""

POLICY_NAMESPACE = f"{PREFIX}policy-namespace"
RULE_NAME = f"{PREFIX}rule-name"
CLONE_SOURCE = f"{PREFIX}clone-source"


@dataclass(frozen=True, slots=True)
class Origin:
    """One rule and one trigger of it. Names of policy and rule are cut as labels are; a policy written in CEL has no `rule`."""

    policy: str
    policy_namespace: str
    rule: str
    group: str
    version: str
    kind: str
    namespace: str
    uid: str

    @property
    def api_version(self) -> str:
        """The trigger's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def seed(self) -> str:
        """What chance follows from: the same each time, so that a random name stays the same name."""
        return f"generate/{self.policy_namespace}/{self.policy}/{self.rule}/{self.uid}"

    @property
    def selector(self) -> str:
        """What selects the objects that the rule made for the trigger, by all that they say of it.

        Labels that somebody else wrote may name its UID where it is not; only objects that say the same may go then.
        """
        of_rule = rule_selector(self.policy, self.policy_namespace, self.rule)
        place = (("group", self.group), ("kind", self.kind), ("namespace", self.namespace))
        of_place = ",".join(f"{PREFIX}trigger-{name}={value}" for name, value in place)
        return f"{of_rule},{of_place},{TRIGGER_UID}={self.uid}"


def rule_selector(policy: str, policy_namespace: str, rule: str) -> str:
    """Return what selects all objects that a rule made, or (without `rule`) a policy written in CEL."""
    of_policy = f"{MANAGED_BY}=kyverno,{PREFIX}policy-name={policy[:MAX_LABEL]}"
    if rule:
        return f"{of_policy},{POLICY_NAMESPACE}={policy_namespace},{RULE_NAME}={rule[:MAX_LABEL]}"
    within = (
        f"{POLICY_NAMESPACE}={policy_namespace}" if policy_namespace else f"!{POLICY_NAMESPACE}"
    )
    return f"{of_policy},{within},!{RULE_NAME}"


def made_by(place: tuple[str, str]) -> tuple[str, str]:
    """Return what selects all objects of a rule, by the identity of its policy and its name, and the policy's namespace."""
    policy, rule = place
    _, is_cel, key = policy.rpartition(":")
    namespace, _, name = key.rpartition("/")
    return rule_selector(name, namespace, "" if is_cel else rule), namespace


def origin_of(rule: CompiledRule, trigger: Mapping[str, str]) -> Origin:
    """Return the origin of what a rule makes for a trigger, given as a reference."""
    group, _, version = trigger.get("apiVersion", "").rpartition("/")
    return Origin(
        policy=rule.policy.name[:MAX_LABEL],
        policy_namespace=rule.policy.namespace,
        rule=rule_label(rule),
        group=group,
        version=version,
        kind=trigger.get("kind", ""),
        namespace=trigger.get("namespace", ""),
        uid=trigger.get("uid", ""),
    )


def origin_in(obj: Object) -> Origin | None:
    """Return where an object comes from, None when its labels do not say."""
    labels = (obj.get("metadata") or {}).get("labels") or {}

    def label(name: str) -> str:
        return str(labels.get(f"{PREFIX}{name}") or "")

    if labels.get(MANAGED_BY) != "kyverno" or not label("policy-name") or not label("trigger-uid"):
        return None
    return Origin(
        policy=label("policy-name"),
        policy_namespace=label("policy-namespace"),
        rule=label("rule-name"),
        group=label("trigger-group"),
        version=label("trigger-version"),
        kind=label("trigger-kind"),
        namespace=label("trigger-namespace"),
        uid=label("trigger-uid"),
    )


def is_copy(obj: Object) -> bool:
    """Tell whether a generated object is a copy of another one."""
    return bool(((obj.get("metadata") or {}).get("labels") or {}).get(SOURCE_UID))


def is_of(origin: Origin, rule: CompiledRule) -> bool:
    """Tell whether an origin names a rule."""
    policy = rule.policy
    return (
        origin.policy == policy.name[:MAX_LABEL]
        and origin.policy_namespace == policy.namespace
        and origin.rule == rule_label(rule)
    )


def rule_label(rule: CompiledRule) -> str:
    """Return what labels call a rule; a policy written in CEL has none to name."""
    return "" if is_of_cel(rule.policy) else rule.rule.name[:MAX_LABEL]
