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


@LIBRARY.add("Authorizer.serviceAccount(string, string) -> Authorizer")
def _service_account(_authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    return Authorizer(f"{namespace}/{name}")


@LIBRARY.add("Authorizer.path(string) -> Check")
def _path(authorizer: Authorizer, path: str) -> Check:
    return Check(lookups.AccessCheck("", path=path, service_account=authorizer.service_account))


@LIBRARY.add("Authorizer.group(string) -> Check")
def _group(authorizer: Authorizer, group: str) -> Check:
    return Check(lookups.AccessCheck("", group=group, service_account=authorizer.service_account))


def _declare(method: str, field: str) -> None:
    def with_field(check: Check, text: str) -> Check:
        return Check(replace(check.question, **{field: text}))

    LIBRARY.add(f"Check.{method}(string) -> Check")(with_field)


for _method, _field in (
    ("resource", "resource"),
    ("subresource", "subresource"),
    ("namespace", "namespace"),
    ("name", "name"),
    ("fieldSelector", "field_selector"),
    ("labelSelector", "label_selector"),
):
    _declare(_method, _field)


@LIBRARY.add("Check.check(string) -> Decision", env=True)
def _check(env: CelEnv, check: Check, verb: str) -> Decision:
    answer: Any = env.ask(replace(check.question, verb=verb))
    return Decision(
        answer.get("allowed", False) is True,
        str(answer.get("reason", "")),
        str(answer.get("error", "")),
    )


@LIBRARY.add("Decision.allowed() -> bool")
def _allowed(decision: Decision) -> bool:
    return decision.allowed


@LIBRARY.add("Decision.reason() -> string")
def _reason(decision: Decision) -> str:
    return decision.reason


@LIBRARY.add("Decision.errored() -> bool")
def _errored(decision: Decision) -> bool:
    return bool(decision.error)


@LIBRARY.add("Decision.error() -> string")
def _error(decision: Decision) -> str:
    return decision.error


@LIBRARY.add("jsonpatch.escapeKey(string) -> string")
def _escape_key(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")
