"""What words name: a rule of a policy, and the objects that a grant or a code is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError, PolicyError
from engine.grants.subjects import ALL_RULES
from engine.model.kinds import identity, named
from engine.record import record, replace
from kubectl_kpolicy.output.misuse import Misuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.kube import Client
    from engine.model import Object

_PARTS_OF_KEY = 2


@record
class Target:
    """One object, or all of a kind with some labels."""

    kind: str
    name: str = ""
    namespace: str = ""
    selector: Object | None = None


def read_rule(text: str) -> tuple[str, tuple[str, ...]]:
    """Read a policy's identity and rules; raises EngineError.

    `POLICY`, `POLICY/RULE` or `POLICY/RULE,RULE`, `NAMESPACE/POLICY/RULE` for one of a namespace; one written in CEL is
    `SHORT:NAME` or `SHORT:NAMESPACE/NAME` by the short name of its kind, and has no rules.
    """
    if not text:
        raise Misuse(
            "say for which policy",
            help="write POLICY, POLICY/RULE, NAMESPACE/POLICY/RULE or vpol:POLICY",
        )
    if ":" in text:
        return _of_cel(text), ()
    *policy, rules = text.split("/") if "/" in text else (text, "")
    if not all(policy) or len(policy) > _PARTS_OF_KEY:
        raise Misuse(f"`{text}` names no policy", help="write POLICY, POLICY/RULE, NAMESPACE/POLICY/RULE or vpol:POLICY")  # fmt: skip
    return "/".join(policy), tuple(filter(None, rules.split(","))) or ALL_RULES


def _of_cel(text: str) -> str:
    try:
        kind, key = named(text.removesuffix("/*"))
    except PolicyError as error:
        raise Misuse(error.message, help=error.help) from error
    return identity(kind.kind, key)


async def with_kinds(client: Client, targets: Sequence[Target]) -> list[Target]:
    """Return targets with kinds as the server writes them, so that `deploy/web` is a Deployment; raises EngineError."""
    if all(one.kind[:1].isupper() or "*" in one.kind for one in targets):
        return list(targets)
    from controllers.kube import Discovery

    discovery = Discovery(client)
    await discovery.refresh()
    found = []
    for one in targets:
        kind = discovery.named(one.kind)
        if kind is None:
            raise EngineError(f"the server has no kind `{one.kind}`", help="kubectl api-resources")
        found.append(replace(one, kind=kind.kind))
    return found
