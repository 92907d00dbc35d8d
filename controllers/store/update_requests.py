"""UpdateRequests as values: work that a rule caused, written down before it is done (rows U-01, A-24).

For the sink that writes them and the loop that carries them out. A request holds the AdmissionRequest that caused it, because rules
read it, or for work without one only the reference to the trigger. Its name follows from its content: writing the same
work down twice is one request.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import orjson

from controllers.kube.kinds import UPDATE_REQUESTS
from engine.fields import part
from engine.lang import rfc3339
from engine.model import NOBODY, Json, Object, Review, UserInfo
from engine.model.kinds import identity

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

GENERATE: Final = "generate"
MUTATE: Final = "mutate"
CEL_GENERATE: Final = "cel-generate"
CEL_MUTATE: Final = "cel-mutate"

PENDING: Final = "Pending"
FAILED: Final = "Failed"

MOST_REMEMBERED: Final = 4000
"""Targets that are remembered as changed; what a status holds beyond would not fit into an object of the cluster."""

LARGEST: Final = 512 * 1024
"""Bytes of an AdmissionRequest that are written down; of a larger one only who, what and where are kept."""

_UNPROVEN: Final = "kpolicy.io/unproven"
"""Annotation of a request that nobody proved to be the API server's."""
_SEEN: Final = "kpolicy.io/seen-version"
_LABELS: Final = {
    GENERATE: "generate.kyverno.io",
    CEL_GENERATE: "generate.kyverno.io",
    MUTATE: "mutate.updaterequest.kyverno.io",
    CEL_MUTATE: "mutate.updaterequest.kyverno.io",
}
_FAMILIES: Final = {CEL_GENERATE: "GeneratingPolicy", CEL_MUTATE: "MutatingPolicy"}
_LONGEST_LABEL: Final = 63
_IDENTITY: Final = ("apiVersion", "kind", "namespace", "name", "uid")


@dataclass(frozen=True, slots=True)
class RuleWork:
    """One rule of a request; with `undo` what it made for the trigger is to be deleted instead."""

    rule: str
    trigger: Mapping[str, str] = field(default_factory=dict)
    undo: bool = False

    @property
    def key(self) -> str:
        """What tells this work from that of the same request for other rules and triggers."""
        return f"{self.rule}/{self.trigger.get('uid', '')}"


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """What is to be done. `policy` is the identity of a policy. `created_at` is the instant that rules see as now, however late the work is done.

    `changed` holds, by `RuleWork.key`, the UIDs of the targets that were changed by attempts which failed in the end. Of one that
    `is_proven` does not hold for, nobody knows that the API server asked: it holds no request and no user, but which operation
    is to be seen on the trigger, and with `seen` the resourceVersion that the trigger must have left behind.
    """

    type: str
    policy: str
    work: tuple[RuleWork, ...]
    request: Mapping[str, Json] = field(default_factory=dict)
    user: UserInfo = NOBODY
    name: str = ""
    uid: str = ""
    state: str = ""
    retries: int = 0
    created_at: datetime | None = None
    changed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_proven: bool = True
    claimed: str = ""
    seen: str = ""

    @property
    def operation(self) -> str:
        """The operation that caused the work, if a request did."""
        return str(self.request.get("operation") or self.claimed)

    @property
    def key(self) -> str:
        """`name`, or `namespace/name`, of the policy."""
        return self.policy.rpartition(":")[2]

    @property
    def seed(self) -> str:
        """What chance follows from: the same for every attempt at the same work."""
        return str(self.request.get("uid") or self.uid or self.name)

    @property
    def trigger(self) -> Mapping[str, str]:
        """The object that caused the work."""
        return self.work[0].trigger if self.work else {}


def document(update: UpdateRequest, namespace: str) -> Object:
    """Return the object to write in the controllers' namespace."""
    body = _body(update)
    marks = {} if update.is_proven else {_UNPROVEN: "true", _SEEN: update.seen}
    told = {**body, **marks}
    digest = hashlib.sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).hexdigest()
    prefix = _LABELS[update.type]
    trigger = update.trigger
    labels = {
        f"{prefix}/policy-name": update.key.rpartition("/")[2][:_LONGEST_LABEL],
        f"{prefix}/trigger-kind": trigger.get("kind", "")[:_LONGEST_LABEL],
        f"{prefix}/trigger-namespace": trigger.get("namespace", "")[:_LONGEST_LABEL],
    }
    return UPDATE_REQUESTS.document(
        f"ur-{digest[:16]}",
        namespace,
        labels=labels,
        annotations=marks,
        spec=body,
        status={"state": PENDING},
    )


def _body(update: UpdateRequest) -> Object:
    trigger = dict(update.trigger)
    return {
        "requestType": update.type,
        "policy": update.key,
        "resource": trigger,
        "ruleContext": [
            {
                "rule": one.rule if update.type not in _FAMILIES else update.key,
                "trigger": dict(one.trigger),
                "deleteDownstream": one.undo,
            }
            for one in update.work
        ],
        "context": {
            "userInfo": {
                "roles": list(update.user.roles),
                "clusterRoles": list(update.user.cluster_roles),
                "userInfo": update.user.info,
            },
            "admissionRequestInfo": {
                "admissionRequest": _bounded(update.request),
                "operation": update.operation,
            },
        },
    }


def _bounded(request: Mapping[str, Json]) -> Object:
    """Return the AdmissionRequest, without its objects where it would not fit into an object of the cluster."""
    whole = dict(request)
    if len(orjson.dumps(whole)) <= LARGEST:
        return whole
    return {key: value for key, value in whole.items() if key not in ("object", "oldObject")}


def read_update_request(obj: Object) -> UpdateRequest:
    """Return what a stored UpdateRequest asks for; parts that are not as we write them count as absent."""
    metadata, spec = part(obj, "metadata"), part(obj, "spec")
    context, status = part(spec, "context"), part(obj, "status")
    info, marks = part(context, "admissionRequestInfo"), part(metadata, "annotations")
    is_proven = _UNPROVEN not in marks
    request = part(info, "admissionRequest") if is_proven else {}
    whole, is_cel = part(spec, "resource"), spec.get("requestType") == CEL_GENERATE
    rules = spec.get("ruleContext") or [{"rule": spec.get("rule"), "deleteDownstream": spec.get("deleteDownstream")}]  # fmt: skip
    return UpdateRequest(
        type=str(spec.get("requestType") or ""),
        policy=_policy(spec),
        work=tuple(_work(part(one), whole, is_cel=is_cel) for one in rules),
        request=request,
        user=_user(part(context, "userInfo")) if is_proven else NOBODY,
        name=str(metadata.get("name") or ""),
        uid=str(metadata.get("uid") or ""),
        state=str(status.get("state") or ""),
        retries=int(status.get("retryCount") or 0),
        created_at=rfc3339.read(metadata.get("creationTimestamp")),
        changed=_changed(status.get("changedTargets")),
        is_proven=is_proven,
        claimed=str(info.get("operation") or ""),
        seen=str(marks.get(_SEEN) or ""),
    )


def _policy(spec: Mapping[str, Json]) -> str:
    """Return the identity of the policy that a request names by its key."""
    key = str(spec.get("policy") or "")
    family = _FAMILIES.get(str(spec.get("requestType")))
    if family is None:
        return key
    return identity(f"Namespaced{family}" if "/" in key else family, key)


def _changed(block: Json) -> dict[str, tuple[str, ...]]:
    return {
        key: tuple(map(str, uids)) for key, uids in part(block).items() if isinstance(uids, list)
    }


def _work(block: Mapping[str, Json], whole: Mapping[str, Json], *, is_cel: bool) -> RuleWork:
    trigger = part(block, "trigger") or whole
    named = {key: str(trigger[key]) for key in _IDENTITY if trigger.get(key)}
    # policies written in CEL are one rule, which requests call as the policy with its namespace
    rule = str(block.get("rule") or "")
    rule = rule.rpartition("/")[2] if is_cel else rule
    return RuleWork(rule, named, undo=block.get("deleteDownstream") is True)


def _user(block: Mapping[str, Json]) -> UserInfo:
    info = part(block, "userInfo")
    return UserInfo(
        username=str(info.get("username") or ""),
        uid=str(info.get("uid") or ""),
        groups=tuple(map(str, info.get("groups") or ())),
        extra=part(info, "extra"),
        roles=tuple(map(str, block.get("roles") or ())),
        cluster_roles=tuple(map(str, block.get("clusterRoles") or ())),
    )


def review_of_update(
    update: UpdateRequest, trigger: Object | None, namespace_labels: Mapping[str, str]
) -> Review:
    """Return the review that a rule is asked about: that of the request, or of a trigger that is looked at anew.

    The trigger as it is now stands for an object that the request does not hold. Of a request for a subresource the kind is
    that of the trigger, as rules name it, and not that of the body, such as a Binding.
    """
    request = update.request
    subresource = str(request.get("subResource") or "")
    kind = part(None if subresource else request.get("kind")) or _kind_of(update.trigger)
    if subresource and trigger is None:
        trigger = {"apiVersion": "", "kind": ""}
    held = request.get("object") or request.get("oldObject")
    return Review(
        object=_placed(request.get("object"), request) if held else trigger,
        old_object=_placed(request.get("oldObject"), request),
        operation=str(request.get("operation") or "CREATE"),
        group=str(kind.get("group") or ""),
        version=str(kind.get("version") or ""),
        kind=str(kind.get("kind") or ""),
        subresource=subresource,
        user=update.user,
        namespace_labels=namespace_labels,
        request=request,
    )


def _kind_of(trigger: Mapping[str, str]) -> Mapping[str, Json]:
    group, _, version = trigger.get("apiVersion", "").rpartition("/")
    return {"group": group, "version": version, "kind": trigger.get("kind", "")}


def _placed(obj: Json, request: Mapping[str, Json]) -> Object | None:
    """Return an object that states its namespace, as rules expect it."""
    if not isinstance(obj, dict):
        return None
    metadata, namespace = part(obj, "metadata"), request.get("namespace")
    if metadata.get("namespace") or not namespace or obj.get("kind") == "Namespace":
        return obj
    return {**obj, "metadata": {**metadata, "namespace": namespace}}


def status(
    state: str,
    message: str = "",
    retries: int = 0,
    changed: Mapping[str, Collection[str]] | None = None,
) -> Object:
    """Return the status that says how far the work is."""
    found: Object = {"state": state, "retryCount": retries, "message": message[:1024]}
    left = MOST_REMEMBERED
    for key, uids in (changed or {}).items():
        kept = sorted(uids)[: max(left, 0)]
        left -= len(kept)
        if kept:
            found.setdefault("changedTargets", {})[key] = kept
    return found
