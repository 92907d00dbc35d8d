"""The one object that somebody asks about: what people write for it, and the object on the server or in the rows that it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.fields import word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controllers.kube import Client
    from engine.model import Object
    from kubectl_kpolicy.output.rows import Row

_FORMS = (
    "write KIND/NAME, NAMESPACE/KIND/NAME or KIND/NAME -n NAMESPACE, such as payments/deploy/web"
)

_SHORT = {"po": "pod", "deploy": "deployment", "sts": "statefulset", "ds": "daemonset", "rs": "replicaset", "cj": "cronjob", "cm": "configmap",
          "svc": "service", "ns": "namespace", "sa": "serviceaccount", "ing": "ingress", "netpol": "networkpolicy", "pvc": "persistentvolumeclaim",
          "no": "node", "polex": "policyexception", "cpol": "clusterpolicy", "pol": "policy", "gr": "grant"}  # fmt: skip
"""kubectl's short names of kinds, for words that are compared with rows, and for servers that do not tell theirs."""


def spellings(name: str) -> set[str]:
    """Return a name in lower case as rows may have it: `deploy/web`, `deployments/web` and `Deployment/web` are the same."""
    lowered = name.lower()
    kind, slash, rest = lowered.partition("/")
    if not slash:
        return {lowered}
    singular = f"{kind[:-3]}y" if kind.endswith("ies") else kind.removesuffix("s")
    return {lowered, f"{_SHORT.get(kind, kind)}/{rest}", f"{singular}/{rest}"}


def subject_of(text: str) -> tuple[str, str]:
    """Return namespace (empty where none is given) and `KIND/NAME` of what somebody wrote; raises EngineError."""
    words = [one for one in text.split() if one not in ("-n", "--namespace")]
    names = [one for one in words if "/" in one]
    places = [one for one in words if "/" not in one]
    if len(names) != 1 or len(places) > 1:
        raise EngineError(f"`{text.strip()}` names no object", help=_FORMS)
    steps = [*places, *names[0].split("/")]
    if len(steps) not in (2, 3) or not all(steps):
        raise EngineError(f"`{text.strip()}` names no object", help=_FORMS)
    return (steps[0] if len(steps) == 3 else ""), "/".join(steps[-2:])


def place_in_rows(rows: Iterable[Row], namespace: str, resource: str) -> tuple[str, str] | None:
    """Return namespace and `Kind/name` as rows have it; None where none speaks of it. Raises EngineError for several."""
    wanted = spellings(resource)
    found = {
        (row.text("namespace"), row.text("resource"))
        for row in rows
        if row.text("resource").lower() in wanted and namespace in ("", row.text("namespace"))
    }
    return _only(resource, found)


async def object_named(client: Client, namespace: str, resource: str) -> Object:
    """Return the object; without a namespace the only one of that name, wherever it is.

    Raises EngineError for a kind that the server does not have and for several objects, NotFound and KubeError.
    """
    from controllers.kube import Discovery
    from controllers.kube.errors import NotFound

    kind_name, _, name = resource.rpartition("/")
    discovery = Discovery(client)
    await discovery.refresh()
    kind = discovery.named(kind_name) or discovery.named(_SHORT.get(kind_name.lower(), ""))
    if kind is None:
        raise EngineError(f"the server has no kind `{kind_name}`", help="kubectl api-resources lists them")  # fmt: skip
    if namespace or not kind.namespaced:
        return await client.get(kind, name, namespace if kind.namespaced else "")
    page = await client.list_all(kind, "", field_selector=f"metadata.name={name}")
    found = {(word(obj, "metadata", "namespace"), f"{kind.kind}/{name}"): obj for obj in page.items}
    place = _only(resource, found)
    if place is None:
        raise NotFound(f"there is no {kind} `{name}` in any namespace", status=404)
    return {"apiVersion": kind.api_version, "kind": kind.kind, **found[place]}


def _only(resource: str, places: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    found = sorted(places)
    if len(found) > 1:
        names = ", ".join("/".join(filter(None, one)) for one in found[:4])
        raise EngineError(f"`{resource}` may be {names}", help="write NAMESPACE/KIND/NAME")
    return found[0] if found else None
