"""The work behind `kubectl kpolicy otp`: one connection for a command, outcome in words or data, exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from controllers.kube.kinds import LEASES, ONE_TIME_CODES
from controllers.store import throttles
from engine import vocabulary
from engine.errors import EngineError
from engine.grants.subjects import subject_text
from engine.record import record
from kubectl_kpolicy.output.diagnostics import ExitCode, visible
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster
from kubectl_kpolicy.session.cluster import ClusterFlags, failed
from kubectl_kpolicy.session.identity import Identity, somebody
from kubectl_kpolicy.session.targets import Target, with_kinds

from . import issuing
from .showing import Handover, check_handover, hand_over, probe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from controllers.kube import Access, Client
    from engine.model import Object


@record
class OtpRequest:
    """What the verbs of `otp` were told, by the names of their flags; each reads those that it has."""

    connection: ClusterFlags
    journal: str = ""
    grant: str = ""
    for_user: str = ""
    users: tuple[str, ...] = ()
    bind: str = ""
    count: int = 1
    ttl: str = ""
    reason: str = ""
    show: bool = False
    out_file: str = ""
    seal_to: str = ""
    names: tuple[str, ...] = ()
    request: str = ""
    use: str = ""
    revoke: bool = False
    code_id: str = ""
    filename: str = ""
    sealed: str = ""
    key: str = ""
    output: str = ""
    dry_run: str = "none"
    system_namespace: str = "kyverno"
    quiet: bool = False
    non_interactive: bool = False

    @property
    def tried(self) -> str:
        """What is said behind an outcome that was only tried out."""
        return "" if self.dry_run == "none" else f" ({self.dry_run} dry run)"

    @property
    def on_server(self) -> bool:
        """Whether the server is asked to change nothing."""
        return self.dry_run == "server"


def issue(flags: OtpRequest) -> int:
    """Issue a code, into a journal where one is named; raises EngineError."""
    if flags.journal:
        return _issue_into_journal(flags)
    ttl, handover = issuing.read_ttl(flags.ttl), _handover(flags)
    seal = _seal(handover)

    async def work(client: Client, access: Access) -> int:
        who = await somebody(client)
        wanted = await _wanted(flags, client, access.namespace or "default")
        obj, code = await _made(flags, client, wanted, who, ttl)
        _tell(flags, obj, f"{wanted.user} may use it for {subject_text(wanted.policy, wanted.rules)} on {wanted.kind}/{wanted.name} in {wanted.namespace}")  # fmt: skip
        if flags.dry_run == "none":
            _hand_over(handover, seal(code, obj), [obj])
        return ExitCode.DONE

    return cluster.with_client(flags.connection, work)


async def _made(flags: OtpRequest, client: Client, wanted: issuing.Wanted, who: Identity, ttl: timedelta) -> tuple[Object, str]:  # fmt: skip
    """Make a code and its object; raises EngineError."""
    import secrets

    from engine.codes import issued_code, shown

    code = issued_code(secrets.token_bytes(32))
    obj = issuing.document(
        code, wanted, who.user, cluster.now() + ttl, flags.system_namespace, who.groups
    )
    if flags.dry_run == "client":
        await issuing.judge(client, obj, cluster.now())
    else:
        obj = await issuing.issue(client, obj, cluster.now(), dry_run=flags.on_server)
    return obj, shown(code)


def _seal(handover: Handover) -> Callable[[str, Object], str]:
    """Return what a code is handed over as: itself, or sealed to whom the handover names; raises EngineError."""
    if not handover.recipient:
        return lambda code, _obj: code
    from kubectl_kpolicy.output.structured import json_text

    from .sealing import read_recipient, sealed_about

    key = read_recipient(handover.recipient)
    return lambda code, obj: json_text(sealed_about(code, obj, key)).rstrip("\n")


def _hand_over(handover: Handover, text: str, objects: Sequence[Object]) -> None:
    """Hand a code over; where that fails nobody will ever know it, so that it is said how to make it void."""
    try:
        hand_over(handover, text)
    except (EngineError, OSError) as error:
        names = " ".join(one["metadata"]["name"] for one in objects)
        raise EngineError(f"the code is lost: {error}", help=f"kubectl kpolicy otp void {names}") from error  # fmt: skip


def seal_set(flags: OtpRequest) -> int:
    """Issue several codes for the night in which nobody can be asked, sealed into one file; raises EngineError."""
    from kubectl_kpolicy.output.structured import json_text, list_of

    from .sealing import read_recipient, sealed_about

    ttl, key = issuing.read_ttl(flags.ttl), read_recipient(flags.seal_to)
    handover = Handover(file=flags.out_file, recipient=flags.seal_to)
    probe(handover)
    policy, rules, kind, name = issuing.read_binding(flags.bind)

    async def work(client: Client, access: Access) -> int:
        who, space = await somebody(client), access.namespace or "default"
        [target] = await with_kinds(client, [Target(kind, name)])
        sealed: list[Object] = []
        objects: list[Object] = []
        for user in flags.users:
            for _ in range(flags.count):
                wanted = issuing.Wanted(user, policy, rules, target.kind, name, space, flags.reason)
                obj, code = await _made(flags, client, wanted, who, ttl)
                objects.append(obj)
                sealed.append(sealed_about(code, obj, key))
        if not flags.quiet:
            print(visible(f"{len(objects)} codes sealed{flags.tried} until {objects[-1]['spec']['expiresAt']}"), file=sys.stderr)  # fmt: skip
        if flags.dry_run == "none":
            _hand_over(handover, json_text(list_of(sealed)).rstrip("\n"), objects)
        return ExitCode.DONE

    return cluster.with_client(flags.connection, work)


def lock_status(flags: OtpRequest) -> int:
    """Print who is not listened to because of wrong codes; raises EngineError."""
    from kubectl_kpolicy.output.structured import write_list
    from kubectl_kpolicy.output.table import Column, Table

    async def work(client: Client, _access: Access) -> list[Object]:
        return await _standings(client, flags.system_namespace, cluster.now())

    found = [one for one in cluster.with_client(flags.connection, work) if not flags.users or one["user"] in flags.users]  # fmt: skip
    table = Table([Column(head) for head in _HEADS])
    for one in found:
        table.add(one["user"], one["state"], str(one["wrong"]["minute"]), str(one["wrong"]["month"]), str(one["offered"]["minute"]))  # fmt: skip
    if found or flags.output != "table":
        write_list(sys.stdout, found, table, flags.output)
    if not flags.quiet:
        print(*filter(None, map(_advice, found)), sep="\n", end="", file=sys.stderr)
        if not found:
            print("nobody brought wrong codes lately", file=sys.stderr)
    return ExitCode.DONE


def _handover(flags: OtpRequest) -> Handover:
    """Return how the code is handed over; nothing is needed where none is made. Raises EngineError."""
    handover = Handover(show=flags.show, file=flags.out_file, recipient=flags.seal_to)
    if flags.dry_run == "none":
        check_handover(handover)
        probe(handover)
    return handover


async def _wanted(flags: OtpRequest, client: Client, namespace: str) -> issuing.Wanted:
    if flags.grant:
        return await issuing.wanted_by_grant(client, flags.grant, namespace)
    if not flags.for_user:
        raise Misuse("say for whom the code is", help="name a grant, or give --for-user and --bind")
    policy, rules, kind, name = issuing.read_binding(flags.bind)
    [target] = await with_kinds(client, [Target(kind, name)])
    return issuing.Wanted(flags.for_user, policy, rules, target.kind, name, namespace, flags.reason)


def _tell(flags: OtpRequest, obj: Object, text: str) -> None:
    from kubectl_kpolicy.output.structured import print_objects

    name = obj["metadata"]["name"]
    if flags.output:
        print_objects([obj], flags.output)
    elif not flags.quiet:
        print(visible(f"onetimecode.kpolicy.io/{name} issued{flags.tried}: {text}, until {obj['spec']['expiresAt']}"), file=sys.stderr)  # fmt: skip


def _issue_into_journal(flags: OtpRequest) -> int:
    place, handover = issuing.journal_place(flags.journal), _handover(flags)

    async def work(client: Client, _access: Access) -> int:
        code = issuing.journal_code()
        await issuing.add_to_journal(client, place, code, dry_run=flags.on_server)
        print(f"a code was added to journal {flags.journal}; whoever holds it can use it once", file=sys.stderr)  # fmt: skip
        hand_over(
            handover, _seal(handover)(code, {"metadata": {"name": flags.journal.replace("/", "-")}})
        )
        return ExitCode.DONE

    if flags.dry_run != "none":
        print("a dry run makes no code for a journal", file=sys.stderr)
        return ExitCode.DONE
    return cluster.with_client(flags.connection, work)


def void(flags: OtpRequest) -> int:
    """Make codes useless; what is wrong with one keeps no other from it. Raises EngineError."""

    async def work(client: Client, _access: Access) -> int:
        who, code = await somebody(client), ExitCode.DONE
        for name in (one.removeprefix("onetimecode.kpolicy.io/") for one in flags.names):
            try:
                await _void(flags, client, name, who.user)
            except EngineError as error:
                code = failed(error)
        return code

    return cluster.with_client(flags.connection, work)


async def _void(flags: OtpRequest, client: Client, name: str, user: str) -> None:
    """Make one code void and say so; raises EngineError."""
    if flags.dry_run == "client":
        await client.get(ONE_TIME_CODES, name, flags.system_namespace)
    else:
        await issuing.void(client, name, flags.system_namespace, user, dry_run=flags.on_server)  # fmt: skip
    print(visible(f"onetimecode.kpolicy.io/{name} void{flags.tried}"))


def redeem(flags: OtpRequest) -> int:
    """Apply the object of a file with a code that is asked for; raises EngineError."""
    from .bringing import announce, bring, carrying, code_of, object_in

    if flags.filename == "-" and not flags.sealed:
        raise Misuse("standard input is where the code comes from", help="name a file with the object")  # fmt: skip
    obj = object_in(flags.filename)
    code = code_of(flags.code_id, flags.sealed, flags.key, may_ask=not flags.non_interactive)
    made = carrying(obj, code)
    if flags.dry_run == "client":
        print(visible(f"{str(obj.get('kind')).lower()}/{(obj.get('metadata') or {}).get('name')} would be applied (client dry run)"))  # fmt: skip
        return ExitCode.DONE

    async def work(client: Client, access: Access) -> int:
        if flags.sealed and flags.dry_run == "none":
            await announce(client, code, flags.system_namespace)
        stored = await bring(client, made, access.namespace or "default", dry_run=flags.on_server)  # fmt: skip
        print(visible(f"{str(stored.get('kind')).lower()}/{stored['metadata']['name']} applied{flags.tried}"))  # fmt: skip
        return ExitCode.DONE

    return cluster.with_client(flags.connection, work)


# Who brought wrong codes how often, and who is therefore not listened to for a while: the counts that all replicas share.

_HEADS: Final = ("USER", "STATE", "WRONG-1M", "WRONG-30D", "OFFERED-1M")


async def _standings(client: Client, namespace: str, now: datetime) -> list[Object]:
    """Return how each user stands who brought wrong codes or was offered many, the worst first; raises KubeError."""
    selector = ",".join(f"{name}={value}" for name, value in throttles.LABELS.items())
    page = await client.list_all(LEASES, namespace, label_selector=selector)
    found = [_standing(lease, now) for lease in page.items]
    return sorted(found, key=lambda one: (-one["wrong"]["month"], one["user"]))


def _standing(lease: Object, now: datetime) -> Object:
    metadata = lease["metadata"]
    counts = throttles.counts_in(lease)
    minute = counts.within_minute(throttles.WRONG, now)
    month = counts.within_month(throttles.WRONG, now)
    state = "locked" if month >= throttles.MOST_WRONG_MONTHLY else "slowed" if minute >= throttles.MOST_WRONG else "open"  # fmt: skip
    return {
        "apiVersion": vocabulary.KPOLICY,
        "kind": "CodeStanding",
        "metadata": {"name": metadata["name"], "namespace": metadata.get("namespace", "")},
        "user": str((metadata.get("annotations") or {}).get(vocabulary.USER) or ""),
        "state": state,
        "wrong": {"minute": minute, "month": month},
        "offered": {"minute": counts.within_minute(throttles.MINTED, now)},
    }


def _advice(one: Object) -> str:
    """Return what becomes of somebody whose codes are not looked at; nothing for others."""
    if one["state"] == "locked":
        return f"{one['user']}: no code is looked at until fewer than {throttles.MOST_WRONG_MONTHLY} wrong ones lie in the last 30 days, or lease/{one['metadata']['name']} is deleted"
    return f"{one['user']}: a minute from the last wrong code on codes are looked at again" if one["state"] == "slowed" else ""  # fmt: skip
