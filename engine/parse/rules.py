"""A rule as a value: the bodies stay as written, defaults and spellings are settled (rows A-10 to A-24, A-70).

Generated rules go through the same function, so that they differ from written ones in nothing but their text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.model import ActionOverride, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Block, Json


def action(text: str) -> str:
    """Return `Audit` or `Enforce` for any accepted spelling (row A-13); anything else audits."""
    return "Enforce" if text.lower() == "enforce" else "Audit"


def action_overrides(entries: Iterable[Block] | None) -> tuple[ActionOverride, ...]:
    """Read failure action overrides of a spec or a rule (rows A-14, A-70)."""
    return tuple(
        ActionOverride(
            action=action(entry.get("action") or ""),
            namespaces=tuple(entry.get("namespaces") or ()),
            namespace_selector=entry.get("namespaceSelector"),
        )
        for entry in entries or ()
    )


def build_rule(raw: Block) -> Rule:
    """Make a Rule of a sound rule document; an empty operation counts as absent."""
    return Rule(
        name=raw.get("name") or "",
        match=raw.get("match") or {},
        exclude=raw.get("exclude") or {},
        context=tuple(raw.get("context") or ()),
        preconditions=raw.get("preconditions"),
        cel_preconditions=tuple(raw.get("celPreconditions") or ()),
        image_extractors=raw.get("imageExtractors") or {},
        validate=_with_action(raw.get("validate")) or None,
        mutate=raw.get("mutate") or None,
        generate=raw.get("generate") or None,
        verify_images=tuple(raw.get("verifyImages") or ()),
        report_properties=raw.get("reportProperties") or {},
        skip_background_requests=raw.get("skipBackgroundRequests") is not False,
        raw=raw,
    )


def _with_action(block: Json) -> Json:
    """Return a validate block with its failure action in the usual spelling."""
    written = block.get("failureAction") if block else None
    if not written or written == action(written):
        return block
    return {**block, "failureAction": action(written)}
