"""Which rights each account of the controllers used, from the API server's audit log, beside those that it is given."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controllers.kube.accounts import ACCOUNTS, Job
from controllers.manifests import rbac

if TYPE_CHECKING:
    from pathlib import Path

_FORBIDDEN = 403


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on a resource of a group, of one account."""

    account: str
    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.account}: {self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


def used(log: Path) -> tuple[set[Right], set[Right]]:
    """Return what was asked for and allowed, and what was asked for and refused."""
    allowed, refused = set(), set()
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if "objectRef" not in event:
            continue
        told = event.get("responseStatus", {}).get("code")
        (refused if told == _FORBIDDEN and _is_of_rights(event) else allowed).add(_right(event))
    return allowed, refused


def _is_of_rights(event: dict[str, Any]) -> bool:
    """Tell a refusal for lack of rights from one by a webhook."""
    return bool(event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid")


def _right(event: dict[str, Any]) -> Right:
    where = event["objectRef"]
    resource = where["resource"] + (f"/{where['subresource']}" if "subresource" in where else "")
    account = event["user"]["username"].rpartition(":")[2]
    return Right(account, where.get("apiGroup", ""), resource, event["verb"])


def given() -> set[Right]:
    """Return every right of the roles that each account is shipped with."""
    return {
        Right(ACCOUNTS[job], group, resource, verb)
        for job in Job
        for one in (*rbac.rules.CLUSTER[job], *rbac.rules.OWN_NAMESPACE.get(job, ()))
        for group in one["apiGroups"]
        for resource in one["resources"]
        for verb in one["verbs"]
    }
