"""Whether a failing rule blocks: the first of five places that says so decides (row A-15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang import wildcard
from engine.match.selectors import compile_selector
from engine.model import ActionOverride, Block, Policy, Review, Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    Enforces = Callable[[Review], bool]

_ENFORCE = "enforce"


def compile_action(policy: Policy, rule: Rule) -> Enforces:
    """Compile the decision whether a failure of `rule` blocks the request under review."""
    validate = rule.validate or {}
    overrides = tuple(_override(block) for block in validate.get("failureActionOverrides") or ())
    own = str(validate.get("failureAction") or "") or _image_action(rule)
    if own:
        return _decide(overrides, own)
    return _decide(overrides + policy.failure_action_overrides, policy.failure_action)


def _image_action(rule: Rule) -> str:
    """Return the action of verifyImages entries: Enforce when any of them says so."""
    actions = [
        str(entry["failureAction"]) for entry in rule.verify_images if entry.get("failureAction")
    ]
    return next((action for action in actions if _blocks(action)), actions[0] if actions else "")


def _override(block: Block) -> ActionOverride:
    return ActionOverride(
        action=str(block.get("action", "")),
        namespaces=tuple(block.get("namespaces") or ()),
        namespace_selector=block.get("namespaceSelector"),
    )


def _blocks(action: str) -> bool:
    return action.lower() == _ENFORCE


def _decide(overrides: tuple[ActionOverride, ...], default: str) -> Enforces:
    blocks = _blocks(default)
    if not overrides:
        return lambda _: blocks
    tests = [(_applies(override), _blocks(override.action)) for override in overrides]

    def enforces(review: Review) -> bool:
        return next((action for applies, action in tests if applies(review)), blocks)

    return enforces


def _applies(override: ActionOverride) -> Enforces:
    selects = (
        compile_selector(override.namespace_selector)
        if override.namespace_selector is not None
        else None
    )
    names = [wildcard.compiled(pattern) for pattern in override.namespaces]

    def applies(review: Review) -> bool:
        if names and not any(matches(review.namespace) for matches in names):
            return False
        if selects is not None:
            return selects(review.namespace_labels)
        return bool(names)

    return applies
