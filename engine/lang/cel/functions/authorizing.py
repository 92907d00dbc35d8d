"""The authorizer of admission policies: checks are built step by step and asked as lookups.

`authorizer.group("apps").resource("deployments").namespace("x").check("create").allowed()`. Whoever evaluates binds
`authorizer` to an `Authorizer` (and `authorizer.requestResource` is a field of it).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from engine.lang.cel import lookups
from engine.lang.cel.values import Message

from .registry import KINDS, Library

if TYPE_CHECKING:
    from engine.lang.cel.env import CelEnv

LIBRARY: Final = Library(cost=20)


@dataclass(frozen=True, slots=True)
class Authorizer(Message):
    """Asks for the requester, or for a service account."""

    service_account: str = ""
    TYPE = "kubernetes.authorization.Authorizer"


@dataclass(frozen=True, slots=True)
class Check(Message):
    """A check that is being built."""

    question: lookups.AccessCheck
    TYPE = "kubernetes.authorization.ResourceCheck"


@dataclass(frozen=True, slots=True)
class Decision(Message):
    """What the authorizer answered."""

    allowed: bool
    reason: str
    error: str
    TYPE = "kubernetes.authorization.Decision"


KINDS["Authorizer"] = (Authorizer,)
KINDS["Check"] = (Check,)
KINDS["Decision"] = (Decision,)


def _with(check: Check, **fields: str) -> Check:
    return Check(replace(check.question, **fields))


@LIBRARY.add("Check.check(string) -> Decision", env=True)
def _check(env: CelEnv, check: Check, verb: str) -> Decision:
    answer: Any = env.ask(replace(check.question, verb=verb))
    return Decision(
        answer.get("allowed", False) is True,
        str(answer.get("reason", "")),
        str(answer.get("error", "")),
    )


LIBRARY.declare(
    {
        "Authorizer.serviceAccount(string, string) -> Authorizer": (
            lambda _authorizer, namespace, name: Authorizer(f"{namespace}/{name}")
        ),
        "Authorizer.path(string) -> Check": lambda authorizer, path: Check(
            lookups.AccessCheck("", path=path, service_account=authorizer.service_account)
        ),
        "Authorizer.group(string) -> Check": lambda authorizer, group: Check(
            lookups.AccessCheck("", group=group, service_account=authorizer.service_account)
        ),
        "Check.resource(string) -> Check": lambda check, text: _with(check, resource=text),
        "Check.subresource(string) -> Check": lambda check, text: _with(check, subresource=text),
        "Check.namespace(string) -> Check": lambda check, text: _with(check, namespace=text),
        "Check.name(string) -> Check": lambda check, text: _with(check, name=text),
        "Check.fieldSelector(string) -> Check": lambda check, text: _with(
            check, field_selector=text
        ),
        "Check.labelSelector(string) -> Check": lambda check, text: _with(
            check, label_selector=text
        ),
        "Decision.allowed() -> bool": lambda decision: decision.allowed,
        "Decision.reason() -> string": lambda decision: decision.reason,
        "Decision.errored() -> bool": lambda decision: bool(decision.error),
        "Decision.error() -> string": lambda decision: decision.error,
        "jsonpatch.escapeKey(string) -> string": (
            lambda text: text.replace("~", "~0").replace("/", "~1")
        ),
    }
)
