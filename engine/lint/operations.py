"""What a rule does: exactly one operation, exactly one way of doing it, and parts that fit together (rows A-10, A-70 to A-90)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.lang import jmes, yaml
from engine.lang.gotext import compact_json
from engine.lang.lazy_regex import regex
from engine.lang.operators import OPERATORS
from engine.reach import Effect, Target, out_of_reach

from .attestors import check_images
from .conditions import DEPRECATED, check_conditions
from .context import check_context
from .findings import Finding, error, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Block, Json, Policy, Rule

_SUPPORTED = "mutate,validate,generate,verifyImages"
_VALIDATE_WAYS = (
    "pattern",
    "anyPattern",
    "deny",
    "foreach",
    "podSecurity",
    "manifests",
    "cel",
    "assert",
)
_MUTATE_WAYS = ("patchStrategicMerge", "patchesJson6902", "foreach")
_GENERATE_WAYS = ("data", "clone", "cloneList", "foreach")
_DEEPEST = 10


class RuleCheck:
    """Checks the operation of one rule; holds what all parts of it need to know."""

    def __init__(self, rule: Rule, path: str, policy: Policy) -> None:
        self.rule = rule
        self.path = path
        self.policy = policy
        # v2beta1 has no `In` and `NotIn` (row A-03)
        is_new = policy.api_version.endswith("/v2beta1")
        self.operators = [one for one in OPERATORS if not (is_new and one in DEPRECATED)]

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong with the rule's operation, its preconditions and its context."""
        yield from self._check_count()
        own = self.policy.namespace
        yield from check_context(self.rule.context, f"{self.path}.context", own_namespace=own)
        yield from self._conditions(self.rule.preconditions, f"{self.path}.preconditions")
        if self.rule.validate:
            yield from self._check_validate(self.rule.validate, f"{self.path}.validate")
        if self.rule.mutate:
            yield from self._check_mutate(self.rule.mutate, f"{self.path}.mutate")
        if self.rule.generate:
            yield from self._check_generate(self.rule.generate, f"{self.path}.generate")
        if self.rule.image_extractors and not self.rule.verify_images:
            yield error(
                f"{self.path}.imageExtractors", "imageExtractors is only allowed with verifyImages"
            )
        yield from self._check_images()

    def _check_count(self) -> Iterator[Finding]:
        rule = self.rule
        given = (_mutates(rule.mutate), rule.validate, rule.generate, rule.verify_images)
        count = sum(map(bool, given))
        if count == 0:
            yield error(
                self.path,
                f"No operation defined in the rule '{rule.name}'.(supported operations: {_SUPPORTED})",
            )
        elif count > 1:
            yield error(
                self.path,
                f"Multiple operations defined in the rule '{rule.name}', only one operation ({_SUPPORTED}) is allowed"
                " per rule",
            )

    def _conditions(self, conditions: object, path: str) -> Iterator[Finding]:
        return check_conditions(conditions, path, allowed=self.operators)

    def _one_of(self, block: Block, names: tuple[str, ...], path: str) -> Iterator[Finding]:
        if sum(block.get(name) is not None for name in names) != 1:
            yield error(path, f"only one of {', '.join(names)} must be given")

    def _check_validate(self, block: Block, path: str) -> Iterator[Finding]:
        yield from self._one_of(block, _VALIDATE_WAYS, path)
        yield from self._check_patterns(block, path)
        yield from self._check_deny(block, path)
        if pod_security := block.get("podSecurity"):
            from engine.podsecurity.exclusions import exclusion_faults

            level = pod_security.get("level") or ""
            at = f"{self.path}.podSecurity.exclude"
            for fault in exclusion_faults(pod_security.get("exclude"), at, level=level):
                place, _, text = fault.partition(": ")
                yield error(place, text)
        for index, entry in enumerate(block.get("foreach") or ()):
            yield from self._check_each(entry, f"{path}.foreach[{index}]", _VALIDATE_WAYS[:4])

    def _check_patterns(self, block: Block, path: str) -> Iterator[Finding]:
        if block.get("pattern") is not None:
            yield from check_pattern(block["pattern"], f"{path}.pattern")
        if block.get("anyPattern") is not None:
            patterns = block["anyPattern"]
            if not isinstance(patterns, list):
                yield error(f"{path}.anyPattern", "anyPattern must be a list of patterns")
                return
            for index, pattern in enumerate(patterns):
                yield from check_pattern(pattern, f"{path}.anyPattern[{index}]")

    def _check_deny(self, block: Block, path: str) -> Iterator[Finding]:
        deny = block.get("deny") or {}
        yield from self._conditions(deny.get("conditions"), f"{path}.deny.conditions")

    def _check_each(
        self, entry: Block, path: str, ways: tuple[str, ...], depth: int = 0
    ) -> Iterator[Finding]:
        """Check one foreach entry of validate or mutate, which does its work in one of `ways`, and those below it."""
        yield from self._check_list(entry, path)
        yield from self._one_of(entry, ways, path)
        yield from check_context(
            entry.get("context") or (), f"{path}.context", own_namespace=self.policy.namespace
        )
        yield from self._conditions(entry.get("preconditions"), f"{path}.preconditions")
        yield from self._check_patterns(entry, path)
        yield from self._check_deny(entry, path)
        yield from self._check_patches(entry, path)
        if depth >= _DEEPEST:
            yield error(path, f"foreach is nested deeper than {_DEEPEST} levels")
            return
        for index, nested in enumerate(entry.get("foreach") or ()):
            yield from self._check_each(nested, f"{path}.foreach[{index}]", ways, depth + 1)

    def _check_list(self, entry: Block, path: str) -> Iterator[Finding]:
        listed = entry.get("list")
        if not listed:
            yield error(f"{path}.list", "Required value: a foreach needs a list")
        elif "{{" not in listed:
            try:
                jmes.compile(listed)
            except jmes.ExpressionError as problem:
                # upstream accepts such a policy and answers with an error for every object
                text = f"failed to parse JMESPath {listed}: {problem.message}"
                yield warning(f"{path}.list", text)

    def _check_mutate(self, block: Block, path: str) -> Iterator[Finding]:
        if _mutates(block):
            ways = {name: block.get(name) for name in _MUTATE_WAYS if block.get(name) != ""}
            yield from self._one_of(ways, _MUTATE_WAYS, path)
        yield from self._check_patches(block, path)
        for index, entry in enumerate(block.get("foreach") or ()):
            yield from self._check_each(entry, f"{path}.foreach[{index}]", _MUTATE_WAYS)
        yield from self._check_targets(block, path)

    def _check_targets(self, block: Block, path: str) -> Iterator[Finding]:
        targets = block.get("targets") or ()
        if not targets and self._acts_on_existing(block):
            yield error(
                f"{path}.targets",
                "Required value: targets have to be specified when mutateExistingOnPolicyUpdate is set",
            )
        for index, target in enumerate(targets):
            yield from self._check_target(target, f"{path}.targets[{index}]")

    def _acts_on_existing(self, block: Block) -> bool:
        """Tell whether a mutate rule is to change what is there already; the deprecated place counts last (row A-23)."""
        name = "mutateExistingOnPolicyUpdate"
        own = block.get(name)
        return bool((self.policy.raw.get("spec") or {}).get(name) if own is None else own)

    def _check_patches(self, block: Block, path: str) -> Iterator[Finding]:
        if (patch := block.get("patchStrategicMerge")) is not None:
            yield from check_merge_patch(patch, f"{path}.patchStrategicMerge")
        if text := block.get("patchesJson6902"):
            yield from check_json_patch(text, f"{path}.patchesJson6902", self.rule, self.path)

    def _check_target(self, target: Block, path: str) -> Iterator[Finding]:
        for name in ("apiVersion", "kind"):
            if not target.get(name):
                yield error(f"{path}.{name}", f"Required value: a target needs {name}")
        own, there = self.policy.namespace, target.get("namespace") or ""
        if own and there not in ("", own) and "{{" not in there:
            yield error(
                f"{path}.namespace",
                "Forbidden: This field can be ignored or should have value of the namespace where the policy is being"
                " created",
            )
        else:
            yield from self._check_reach(Effect.MUTATE_EXISTING, target, path)
        yield from self._conditions(target.get("preconditions"), f"{path}.preconditions")

    def _check_generate(self, block: Block, path: str) -> Iterator[Finding]:
        yield from self._check_source(block, _GENERATE_WAYS, path)
        for index, entry in enumerate(block.get("foreach") or ()):
            at = f"{path}.foreach[{index}]"
            yield from self._check_list(entry, at)
            yield from self._check_source(entry, _GENERATE_WAYS[:3], at)
            yield from self._conditions(entry.get("preconditions"), f"{at}.preconditions")
            yield from self._check_generated(entry, at)
        if not block.get("foreach"):
            yield from self._check_generated(block, path)

    def _check_reach(self, effect: Effect, block: Block, path: str) -> Iterator[Finding]:
        """Refuse what is out of reach as far as the text says; what variables come to is asked about when they are known."""
        reason = out_of_reach(effect, _target_in(block), self.policy.namespace)
        if reason:
            yield error(f"{path}.kind", f"Forbidden: {reason}")

    def _check_source(self, block: Block, ways: tuple[str, ...], path: str) -> Iterator[Finding]:
        """Check where what is generated comes from."""
        if sum(block.get(name) is not None for name in ways) > 1:
            text = (
                "only one of generate patterns(data, clone, cloneList and foreach) can be specified"
            )
            yield error(path, f"Forbidden: {text}")
        clone = block.get("clone")
        if isinstance(clone, dict) and not block.get("cloneList") and not clone.get("name"):
            yield error(f"{path}.clone.name", "name cannot be empty")

    def _check_generated(self, block: Block, path: str) -> Iterator[Finding]:
        yield from self._check_reach(Effect.GENERATE, {**block, "namespace": None}, path)
        for index, text in enumerate((block.get("cloneList") or {}).get("kinds") or ()):
            version, _, kind = str(text).rpartition("/")
            listed = {"apiVersion": version, "kind": kind}
            yield from self._check_reach(Effect.CLONE, listed, f"{path}.cloneList.kinds[{index}]")
        if not block.get("cloneList"):
            for name in ("apiVersion", "kind", "name"):
                if not block.get(name):
                    yield error(f"{path}.{name}", f"Required value: {name} of the generated object")
        own = self.policy.namespace
        if not own:
            return
        source = block.get("clone") or block.get("cloneList") or {}
        for place, there in (
            ("namespace", block.get("namespace") or ""),
            ("clone.namespace", source.get("namespace") or own),
        ):
            if there != own:
                text = (
                    "Forbidden: a namespaced policy cannot use objects of other namespaces,"
                    f" expected: {own}, received: {there}"
                )
                yield error(f"{path}.{place}", text)

    def _check_images(self) -> Iterator[Finding]:
        for index, entry in enumerate(self.rule.verify_images):
            at = f"{self.path}.verifyImages[{index}]"
            action = entry.get("failureAction") or self.policy.failure_action
            yield from check_images(entry, at, action)
            yield from self._check_deny(entry.get("validate") or {}, f"{at}.validate")


def _target_in(block: Block) -> Target:
    """Return what a block names, as far as no variable or wildcard stands in for it."""
    version, kind = _fixed(block.get("apiVersion")), _fixed(block.get("kind"))
    namespace = _fixed(block.get("namespace")) or None
    group = version.rpartition("/")[0] if version else None
    return Target(group, kind.partition("/")[0], None, namespace, _fixed(block.get("name")))


def _fixed(value: object) -> str:
    text = value if isinstance(value, str) else ""
    return "" if any(mark in text for mark in ("{{", "*", "?")) else text


def _mutates(block: Block | None) -> bool:
    """Tell whether a mutate block says anything; an empty JSON patch does not, an empty merge patch does."""
    return any(value is not None and value != "" for value in (block or {}).values())


# Patterns and patches with anchors or values that cannot work (sections 2.1 and 2.2, rows ).

_ADDITION = regex(r"\+\(.+\)\Z")
_EXISTENCE = regex(r"\^\(.+\)\Z")
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_DEEPEST_PATTERN = 200


def check_pattern(pattern: Json, path: str) -> Iterator[Finding]:
    """Yield anchors of a validate pattern that have no meaning there."""
    stack: list[tuple[str, Json, int]] = [("/", pattern, 0)]
    while stack:
        at, node, depth = stack.pop()
        if depth > _DEEPEST_PATTERN:
            continue
        if isinstance(node, list):
            stack.extend((f"{at}/{index}", item, depth + 1) for index, item in enumerate(node))
        elif isinstance(node, dict):
            for key, value in node.items():
                place = f"{at}/{key}"
                if _ADDITION.match(key):
                    yield error(f"{path}.{place}", f"unsupported anchor {key}")
                elif _EXISTENCE.match(key) and not isinstance(value, list):
                    yield error(
                        f"{path}.{place}", "existence anchor should have value of type list"
                    )
                stack.append((place, value, depth + 1))


def check_merge_patch(patch: Json, path: str) -> Iterator[Finding]:
    """Yield labels and annotations that would not be strings."""
    metadata = patch.get("metadata") if isinstance(patch, dict) else None
    for name in ("labels", "annotations"):
        values = metadata.get(name) if isinstance(metadata, dict) else None
        if isinstance(values, dict) and not all(isinstance(item, str) for item in values.values()):
            text = 'labels and annotations supports only string values, "use double quotes around the non string values"'
            yield error(f"{path}.metadata.{name}", text)


def check_json_patch(text: str, path: str, rule: Rule, rule_path: str) -> Iterator[Finding]:
    """Yield operations of a rule's own JSON patch that can never be applied.

    Paths may hold variables in foreach only (row A-92). A text that becomes YAML only when its variables are replaced
    cannot be judged here.
    """
    try:
        operations = yaml.load(text)
    except EngineError as problem:
        if "{{" not in text:
            yield error(path, f"failed to decode the patch: {problem.message}")
        return
    in_foreach = "foreach" in path
    for operation in operations if isinstance(operations, list) else ():
        given = operation if isinstance(operation, dict) else {}
        where, kind = given.get("path"), given.get("op")
        if not isinstance(where, str) or not where.startswith("/"):
            shown = where if isinstance(where, str) else ""
            yield error(
                path, f"path must begin with a forward slash: {rule_path}: {shown}".rstrip()
            )
        elif "{{" in where and not in_foreach:
            yield error(
                path,
                f'policy contains invalid variables: rule "{rule.name}" should not have variables in patchesJSON6902'
                " path section",
            )
        elif kind not in _OPERATIONS:
            shown = f"invalid operation {compact_json(given)}: unsupported operation"
            yield error(path, f"path must begin with a forward slash: {rule_path}: {shown}")
