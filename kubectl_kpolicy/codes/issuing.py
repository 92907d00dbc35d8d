"""Issuing a code to a named person for a policy, rules and an object: the OneTimeCode object, which does not hold the code."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from controllers.kube.errors import Conflict, Forbidden, NotFound
from controllers.kube.kinds import CONFIG_MAPS, GRANT_POLICIES, GRANTS, ONE_TIME_CODES
from engine.codes import issued_name, verifier_of
from engine.errors import EngineError
from engine.grants import issuing_policy, length_of, length_text, parse_grant, parse_issued
from engine.grants.circumstances import readable_policies
from engine.grants.issuing import LONGEST, own_refusals
from engine.grants.subjects import ALL_RULES
from engine.lang import rfc3339
from engine.model.kinds import CEL_KINDS, is_of_cel
from engine.record import record
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session.errors import Refused, admission, refused_by
from kubectl_kpolicy.session.targets import read_rule

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from controllers.kube import Client
    from engine.model import Object


@record
class Wanted:
    """What a code is to be good for."""

    user: str
    policy: str
    rules: tuple[str, ...]
    kind: str
    name: str
    namespace: str
    reason: str = ""
    grant: str = ""


def read_binding(text: str) -> tuple[str, tuple[str, ...], str, str]:
    """Read `POLICY/RULE:KIND/NAME`; raises EngineError. Every rule is named, because a code covers what it says and no more.

    A policy written in CEL is `SHORT:NAME`, as everywhere, and has no rules.
    """
    short, _, rest = text.partition(":")
    is_cel = any(one.short == short for one in CEL_KINDS)
    left, colon, right = rest.partition(":") if is_cel else text.partition(":")
    policy, rules = read_rule(f"{short}:{left}" if is_cel else left)
    kind, slash, name = right.partition("/")
    if not (colon and slash and kind and name) or "*" in "".join(rules) or "*" in name:
        raise Misuse(f"`{text}` says not exactly what the code is for", help="write POLICY/RULE:KIND/NAME, or vpol:POLICY:KIND/NAME")  # fmt: skip
    return policy, rules, kind, name


def read_ttl(text: str) -> timedelta:
    """Read how long a code is good; raises EngineError."""
    found = length_of(text)
    if found is None or found > LONGEST:
        raise Misuse(f"`{text}` is no time for a code", help=f"write --ttl 15m; at most {length_text(LONGEST)}")  # fmt: skip
    return found


async def wanted_by_grant(client: Client, name: str, namespace: str) -> Wanted:
    """Return what a grant asks for as what a code is for; raises EngineError where it is not about one object."""
    grant = parse_grant(await client.get(GRANTS, name, namespace))
    rules = () if is_of_cel(grant.policy) else grant.rules or ALL_RULES
    if not grant.target or "*" in (*rules, grant.target):
        raise EngineError(f"grant `{name}` is not about one object and named rules", help="say it with --for-user and --bind")  # fmt: skip
    return Wanted(grant.requester, grant.policy, rules, grant.kind, grant.target, namespace, grant.reason, name)  # fmt: skip


def document(
    code: str, wanted: Wanted, issuer: str, ends: datetime, system: str, groups: Sequence[str] = ()
) -> Object:
    """Return the object of a code in the system namespace."""
    spec: Object = {
        "user": wanted.user,
        "issuedBy": issuer,
        "expiresAt": rfc3339.write(ends),
        "verifier": verifier_of(code),
        "binding": {
            "policy": wanted.policy,
            "rules": list(wanted.rules),
            "object": {"kind": wanted.kind, "namespace": wanted.namespace, "name": wanted.name},
        },
    }
    optional = {"issuedByGroups": list(groups), "grant": wanted.grant, "reason": wanted.reason}
    return {
        "apiVersion": ONE_TIME_CODES.api_version,
        "kind": ONE_TIME_CODES.kind,
        "metadata": {"name": issued_name(code), "namespace": system},
        "spec": {**spec, **{key: value for key, value in optional.items() if value}},
    }


async def issue(client: Client, obj: Object, now: datetime, *, dry_run: bool = False) -> Object:
    """Create the object of a code, or of somebody's agreement to one, and return it as stored; raises Refused and KubeError."""
    await judge(client, obj, now)
    with admission():
        return await client.create(ONE_TIME_CODES, obj, dry_run=dry_run)


async def judge(client: Client, obj: Object, now: datetime) -> None:
    """Refuse what no grant policy lets; raises Refused and KubeError. Where they cannot be read, the server judges alone."""
    code = parse_issued(obj, now)
    refusals = own_refusals(code)
    with suppress(Forbidden, NotFound):
        policies, _ = readable_policies((await client.list_all(GRANT_POLICIES)).items)
        _, refusals = issuing_policy(code, policies)
    if refusals:
        raise refused_by(refusals)


async def void(client: Client, name: str, system: str, by: str, *, dry_run: bool = False) -> Object:
    """Make a code useless; raises Conflict-like Refused where it was used, and KubeError."""
    obj = await client.get(ONE_TIME_CODES, name, system)
    if (obj.get("status") or {}).get("state") == "used":
        raise Refused(f"refused: code `{name}` was used already; revoking it changes nothing")
    status = {"status": {"state": "void", "voidedBy": by}}
    return await client.patch(ONE_TIME_CODES, name, system, status, subresource="status", dry_run=dry_run)  # fmt: skip


# The journal of policies that write `random()` codes into a ConfigMap: issuing a code into it by hand.
#
# Its codes are plain text to whoever may read it; that is what such a policy is. Its form is what `parse_yaml` of a policy
# reads: a list, one code to a line.

_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_LENGTH: Final = 8
_FIELD: Final = "codes"
_LARGEST: Final = 1 << 20
_TRIES: Final = 5


def journal_place(text: str) -> tuple[str, str]:
    """Read `NAMESPACE/NAME`; raises EngineError."""
    namespace, slash, name = text.partition("/")
    if not (slash and namespace and name):
        raise Misuse(f"`{text}` is no journal", help="write --journal NAMESPACE/NAME")
    return namespace, name


def journal_code() -> str:
    """Return a code of the form that such policies make: eight small letters and digits."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))


async def add_to_journal(
    client: Client, place: tuple[str, str], code: str, *, dry_run: bool = False
) -> None:
    """Append a code to a journal; raises Conflict when others keep changing it, and KubeError.

    The patch names the version that was read, so that a code which a policy adds meanwhile is not lost.
    """
    namespace, name = place
    for attempt in range(_TRIES):
        obj = await client.get(CONFIG_MAPS, name, namespace)
        before = str((obj.get("data") or {}).get(_FIELD) or "").rstrip("\n")
        after = f"{before}\n- {code}" if before else f"- {code}"
        if len(after) > _LARGEST:
            raise EngineError(f"journal `{namespace}/{name}` is full", help="take used codes out of it")  # fmt: skip
        patch = {"metadata": {"resourceVersion": obj["metadata"].get("resourceVersion")}, "data": {_FIELD: after}}  # fmt: skip
        try:
            await client.patch(CONFIG_MAPS, name, namespace, patch, dry_run=dry_run)
        except Conflict:
            if attempt == _TRIES - 1:
                raise
        else:
            return
