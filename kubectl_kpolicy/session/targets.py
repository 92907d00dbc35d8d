"""What words name: a rule of a policy, and the objects that a grant or a code is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.record import record, replace
from kubectl_kpolicy.output.misuse import Misuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.kube import Client
    from engine.model import Object


@record
class Target:
    """One object, or all of a kind with some labels."""

    kind: str
    name: str = ""
    namespace: str = ""
    selector: Object | None = None


def read_rule(text: str) -> tuple[str, tuple[str, ...]]:
    """Read `POLICY`, `POLICY/RULE` or `POLICY/RULE,RULE`; raises EngineError."""
    policy, _, rules = text.partition("/")
    if not policy:
        raise Misuse(f"`{text}` names no policy", help="write POLICY or POLICY/RULE")
    return policy, tuple(filter(None, rules.split(","))) or ("*",)


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
