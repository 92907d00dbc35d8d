"""How the engine of a cluster tells the API server from others, and what it does not do because of that (docs/callers.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import EngineError
from engine.parse import parse_policy
from engine.requester import asks_of_request
from kubectl_kpolicy.output.fields import part, word

from .health import OURS, Check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .cache import ClusterCache

CALLERS: Final = "kpolicy.io/callers"
"""Annotation of our webhook configurations (`controllers.webhook.configurations`)."""
_HELP: Final = "give the API server a certificate: docs/callers.md says how"
_MODES: Final = {
    "certificate": ("ok", "the API server is known by its certificate", ""),
    "trusted path": ("warn", "the API server is known by a path only, which --trust-path takes for a proof: whoever reads it in an error can forge requests for some seconds", _HELP),
    "path": ("warn", "the API server is known by a path only, which proves nothing: requests have only the effects that the cluster itself shows", _HELP),
    "nobody": ("fail", "nobody is known to the engine: whoever reaches it is answered", _HELP),
}  # fmt: skip


def callers(world: ClusterCache) -> Iterator[Check]:
    """Yield how callers are known, and which rules and codes do nothing because of that."""
    hooks = (*world.objects("validatingwebhooks"), *world.objects("mutatingwebhooks"))
    ours = [hook for hook in hooks if OURS in part(hook, "metadata", "annotations")]
    if not ours:
        return
    told = {word(hook, "metadata", "annotations", CALLERS) for hook in ours}
    mode = told.pop() if len(told) == 1 else ""
    if mode not in _MODES:
        yield Check("callers", "unknown", "the webhook configurations do not all say how callers are known",
                    "see whether a replica leads; it writes them")  # fmt: skip
        return
    status, detail, fix = _MODES[mode]
    yield Check("callers", status, detail, fix)
    if mode in ("path", "nobody"):
        yield from _left_undone(world)


def _left_undone(world: ClusterCache) -> Iterator[Check]:
    rules = sorted(_rules(world))
    if rules:
        yield Check("callers: rules", "warn", f"not carried out, because nobody proves what they go by: {', '.join(rules)}", _HELP)  # fmt: skip
    codes = sorted(
        word(one, "metadata", "name")
        for one in world.objects("grantpolicies")
        if word(one, "spec", "codes", "mode") not in ("", "off")
        and part(one, "spec", "codes").get("strict") is not True
    )
    if codes:
        yield Check("callers: codes", "warn", f"no code is offered or taken under grant policies that are not strict: {', '.join(codes)}", _HELP)  # fmt: skip


def _rules(world: ClusterCache) -> Iterator[str]:
    """Yield the rules that do work on other objects and go by more than the live object shows."""
    for obj in (*world.objects("clusterpolicies"), *world.objects("policies")):
        try:
            policy = parse_policy(obj, strict=False)
        except EngineError:
            # one that cannot be read is a finding of its own, and carries out nothing
            continue
        for rule in policy.rules:
            works = bool(rule.generate or (rule.mutate or {}).get("targets"))
            if works and (asked := asks_of_request(rule)):
                yield f"{policy.key}/{rule.name} ({asked})"
