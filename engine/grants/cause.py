"""The PolicyException that an active grant causes: what the engine, and stock Kyverno beside it, then honours.

It covers the granted rules for the granted objects in the grant's namespace and nothing else; from a policy written in CEL it is
one of policies.kyverno.io, whose conditions say which objects. It carries its end twice: as our annotation, which counts at the
instant of every decision, and as upstream's TTL label, by which Kyverno deletes it; one of policies.kyverno.io in its spec, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine import vocabulary
from engine.digest import word_of
from engine.lang import rfc3339
from engine.model.kinds import BY_NAME, CEL_GROUP, CLASSIC_GROUP, is_of_cel
from engine.reach import EXCEPTION_KIND
from engine.record import record

from .conditions import conditions_of
from .subjects import reference_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from engine.model import Object, PolicyException
    from engine.model.policy import CelException

    from .model import Grant

_DEFAULTS = {"background": True, "reportResult": "skip"}
"""What the server may add to the spec of an exception."""


def group_of(grant: Grant) -> str:
    """Return the API group of the exception that a grant causes: that of the policy."""
    return CEL_GROUP if is_of_cel(grant.policy) else CLASSIC_GROUP


def exception_name(grant: str) -> str:
    """Return the name of the exception that the grant of a name causes, in the grant's namespace."""
    return f"grant-{grant}"


def exception_of(grant: Grant, expires_at: datetime) -> Object:
    """Return the exception of a grant that ends at `expires_at` (UTC), owned by the Grant object.

    Raises PolicyError for a grant that names no policy of any kind.
    """
    is_cel = is_of_cel(grant.policy)
    return {
        "apiVersion": f"{CEL_GROUP}/v1" if is_cel else f"{CLASSIC_GROUP}/v2",
        "kind": EXCEPTION_KIND,
        "metadata": {
            "name": exception_name(grant.name),
            "namespace": grant.namespace,
            "labels": {
                **vocabulary.BY_KPOLICY,
                vocabulary.TTL_LABEL: expires_at.strftime("%Y-%m-%dT%H%M%SZ"),
            },
            "annotations": {
                vocabulary.EXPIRES_AT: rfc3339.write(expires_at),
                vocabulary.GRANT: f"{grant.namespace}/{grant.name}",
                vocabulary.REQUESTER: grant.requester,
                vocabulary.REASON: grant.reason,
                **({vocabulary.TICKET: grant.ticket} if grant.ticket else {}),
                **({vocabulary.USES: str(grant.uses)} if grant.uses else {}),
            },
            "ownerReferences": [
                {
                    "apiVersion": vocabulary.KPOLICY,
                    "kind": "Grant",
                    "name": grant.name,
                    "uid": grant.uid,
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": _of_cel(grant, expires_at) if is_cel else _classic(grant),
    }


def says_same(spec: Mapping[str, object], expected: Mapping[str, object]) -> bool:
    """Tell whether two specs of exceptions say the same, whatever the server has added to one of them."""
    return {**_DEFAULTS, **spec} == {**_DEFAULTS, **expected}


def _classic(grant: Grant) -> Object:
    return {
        "exceptions": [{"policyName": grant.policy, "ruleNames": _rule_names(grant)}],
        "match": {"any": [{"resources": _resources(grant)}]},
    }


def _of_cel(grant: Grant, expires_at: datetime) -> Object:
    name, kind = reference_of(grant.policy)
    return {
        "policyRefs": [{"name": name, "kind": kind}],
        "matchConditions": conditions_of(grant, is_asked=not BY_NAME[kind].family.is_timed),
        "expiresAt": rfc3339.write(expires_at),
    }


def _rule_names(grant: Grant) -> list[str]:
    """Return the granted rules, with those that autogen makes of them for a controller of Pods."""
    # here, because the plugin lists grants without it
    from engine.autogen import CRON_JOB, CRON_TEMPLATE, TEMPLATE, TEMPLATED

    rules = list(grant.rules) or ["*"]
    place = CRON_TEMPLATE if grant.kind == CRON_JOB else TEMPLATE
    if grant.kind != CRON_JOB and grant.kind not in TEMPLATED:
        return rules
    return [*rules, *(place.name_of(rule) for rule in rules if rule != "*")]


def _resources(grant: Grant) -> Object:
    found: Object = {"kinds": [grant.kind], "namespaces": [grant.namespace]}
    if grant.target:
        found["names"] = [grant.target]
    if grant.selector:
        found["selector"] = dict(grant.selector)
    return found


# How often a grant may be used, as its exception says it: what is counted where, for the webhook that must know at once.
#
# A grant with a number of uses is counted by places: use number 1, 2, … each is taken at most once, by whoever creates its
# record first. One without is only counted for show, and may be counted late.

UNLIMITED: Final = 0
NONE_LEFT: Final = -1
"""What a number that cannot be read stands for: somebody meant to limit the grant."""
_LONGEST: Final = 9


@record
class Granted:
    """An exception (by its identity) that a Grant (by `namespace/name` and UID) caused, and how many requests it may let through."""

    exception: str
    grant: str
    uid: str
    most: int = UNLIMITED

    @property
    def is_limited(self) -> bool:
        """Whether each use has to be taken before a request passes."""
        return self.most != UNLIMITED

    def place(self, number: int) -> str:
        """Return the object name of use `number`, from 1."""
        text = f"kpolicy grant use\0{self.uid}\0{number}"
        return f"grant-use-{word_of(text)}"


def granted_by(exception: PolicyException | CelException) -> Granted | None:
    """Return the grant behind an exception, None for one that people wrote.

    A limited one that no longer tells whose it is lets nothing through, because its uses could not be counted.
    """
    grant = exception.annotations.get(vocabulary.GRANT)
    if not grant:
        return None
    most = _limit(exception.annotations.get(vocabulary.USES))
    uid = _owner(exception)
    if not uid:
        return Granted(exception.identity, grant, "", NONE_LEFT) if most != UNLIMITED else None
    return Granted(exception.identity, grant, uid, most)


def _limit(text: str | None) -> int:
    if text is None:
        return UNLIMITED
    is_number = text.isascii() and text.isdecimal() and len(text) <= _LONGEST
    return (int(text) if is_number else 0) or NONE_LEFT


def _owner(exception: PolicyException | CelException) -> str:
    metadata = exception.raw.get("metadata") or {}
    owners = metadata.get("ownerReferences")
    for one in owners if isinstance(owners, list) else ():
        if isinstance(one, dict) and one.get("kind") == "Grant" and one.get("uid"):
            return str(one["uid"])
    return ""
