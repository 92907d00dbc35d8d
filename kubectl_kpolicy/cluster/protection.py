"""What `doctor` says about who the controllers are to the API server, and whether its own policies guard what is ours.

The engine tells its accounts in an annotation of the webhook configurations that it writes. Guards are compared with those
that this version installs: one that is weaker looks like one that is there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from controllers.kube.accounts import ACCOUNTS, SPOKEN_AS, Job, account_user
from controllers.kube.errors import KubeError
from controllers.kube.kinds import Kind
from engine import vocabulary
from engine.fields import items, part, word
from engine.reach import is_granted
from kubectl_kpolicy.output.time_format import instant

from . import celkinds
from .exception_audit import every_exception
from .health import Check, engine_of, webhooks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from controllers.kube import Client
    from engine.model import Json, Object

    from .cache import ClusterCache

_GROUP: Final = "admissionregistration.k8s.io"
POLICIES: Final = Kind(_GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False)  # fmt: skip
BINDINGS: Final = Kind(_GROUP, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False)  # fmt: skip
_CEL_HOOK: Final = "kyverno-cel-exception-validating-webhook-cfg"
_SERVERS: Final = {"matchPolicy": "Equivalent", "scope": "*"}
"""What an API server adds to a policy that does not say it, and that changes nothing."""


async def protection(client: Client, world: ClusterCache) -> list[Check]:
    """Return the findings; on a cluster whose engine is not ours there are none."""
    if engine_of(world) != "kpolicy":
        return []
    users = _told(world)
    return [*_accounts(users), *await _guards(client, _namespace(world, users), world)]


def _told(world: ClusterCache) -> Mapping[str, str]:
    """Return who each job is, as the engine says; nothing where it says nothing that can be read."""
    for hook in webhooks(world)[0]:
        try:
            found: Any = json.loads(word(hook, "metadata", "annotations", SPOKEN_AS) or "null")
        except ValueError:
            continue
        if isinstance(found, dict):
            return {str(job): str(user) for job, user in found.items()}
    return {}


def _namespace(world: ClusterCache, users: Mapping[str, str]) -> str:
    """Return where the controllers live: by their accounts, else by the service that webhooks name."""
    for user in users.values():
        namespace, _, name = user.removeprefix(vocabulary.SERVICE_ACCOUNT).rpartition(":")
        if user.startswith(vocabulary.SERVICE_ACCOUNT) and name in ACCOUNTS.values():
            return namespace
    for hook in webhooks(world)[0]:
        for one in items(hook, "webhooks"):
            if namespace := word(one, "clientConfig", "service", "namespace"):
                return namespace
    return "kyverno"


def _accounts(users: Mapping[str, str]) -> Iterator[Check]:
    if not users:
        yield Check("accounts", "unknown", "the engine does not say as which accounts it acts",
                    "restart the engine: it writes so when it leads")  # fmt: skip
        return
    spoken: dict[str, list[str]] = {}
    for job, user in users.items():
        spoken.setdefault(user or "somebody unknown", []).append(job)
    shown = "; ".join(f"{', '.join(jobs)} as {user}" for user, jobs in spoken.items())
    if any(len(jobs) > 1 for jobs in spoken.values()):
        yield Check("accounts", "warn", f"jobs share an account, so each may do what the others may: {shown}",
                    "start the engine without --accounts=own")  # fmt: skip
        return
    others = [
        job for job, user in users.items() if user.rpartition(":")[2] not in ACCOUNTS.values()
    ]
    if others:
        yield Check("accounts", "warn", f"{', '.join(others)} is done as an account that is not the shipped one, so guards refuse it: {shown}",
                    f"run the engine as the service account {ACCOUNTS[Job.ADMISSION]}")  # fmt: skip
        return
    shipped = "; ".join(f"{job} as {user.rpartition(':')[2]}" for job, user in users.items())
    yield Check("accounts", "ok", f"each job has an account of its own: {shipped}")


async def _guards(client: Client, namespace: str, world: ClusterCache) -> list[Check]:
    from controllers.manifests.guards import guards

    live: dict[tuple[str, str], Object] = {}
    for kind in (POLICIES, BINDINGS):
        try:
            page = await client.list_all(kind)
        except KubeError as error:
            return [Check("guards", "unknown", f"the API server's own policies cannot be read: {error.message}")]  # fmt: skip
        live |= {(kind.kind, word(one, "metadata", "name")): one for one in page.items}
    fix = f"kubectl kpolicy install guards -n {namespace} | kubectl apply --server-side --force-conflicts -f -"  # fmt: skip
    found = [*_wrong(guards(namespace), live, fix), *_unasked(world, live)]
    if not found:
        user = account_user(namespace, Job.GRANTS)
        return [Check("guards", "ok", f"the API server itself guards grants, exceptions by grant, codes and records, also while we are down; {user} alone writes them")]  # fmt: skip
    return found


def _wrong(
    wanted: Iterable[Object], live: Mapping[tuple[str, str], Object], fix: str
) -> Iterator[Check]:
    """Yield what is missing or altered: a guard, or the binding without which it guards nothing."""
    for guard in wanted:
        name, is_binding = guard["metadata"]["name"], guard["kind"] == BINDINGS.kind
        what = f"the binding of guard {name}" if is_binding else f"guard {name}"
        one = live.get((guard["kind"], name))
        if one is None or part(one, "metadata").get("deletionTimestamp"):
            yield Check(f"guard {name}", "fail", f"{what} is missing: nothing guards its kind while it is", fix)  # fmt: skip
        elif _bare(one.get("spec")) != _bare(guard["spec"]):
            yield Check(f"guard {name}", "fail", f"{what} is not what is installed; somebody altered it, or another version wrote it", fix)  # fmt: skip


def _unasked(world: ClusterCache, live: Mapping[tuple[str, str], Object]) -> Iterator[Check]:
    """Yield which exceptions are older than what asks whoever writes such, so that nobody asked who wrote them."""
    guard = live.get((POLICIES.kind, "kpolicy-granted-exceptions"), {})
    hook = next(
        (one for one in webhooks(world)[0] if word(one, "metadata", "name") == _CEL_HOOK), {}
    )
    older = []
    for obj in every_exception(world):
        asks = guard if is_granted(obj) else hook if celkinds.is_cel(obj) else {}
        made, since = (instant(word(one, "metadata", "creationTimestamp")) for one in (obj, asks))
        if made and since and made < since:
            older.append(f"{word(obj, 'metadata', 'namespace')}/{word(obj, 'metadata', 'name')}")
    if older:
        yield Check(
            "exceptions: makers",
            "warn",
            f"nobody was asked whether they may write what is older than the guard: {', '.join(sorted(older))}",
            "look at each of them; delete it and ask for a grant, or have somebody who may write it make it again",
        )


def _bare(value: Json) -> Json:
    """Return a spec without what says nothing, so that it can be compared with what we wrote."""
    if isinstance(value, dict):
        kept = {key: _bare(one) for key, one in value.items() if _SERVERS.get(key) != one}
        return {key: one for key, one in kept.items() if one not in ({}, [], "", None)}
    return [_bare(one) for one in value] if isinstance(value, list) else value
