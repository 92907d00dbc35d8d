"""The work behind `kubectl kpolicy otp`: one connection for a command, outcome in words or data, exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.errors import EngineError
from kubectl_kpolicy.grants.arguments import Target, with_kinds
from kubectl_kpolicy.grants.commands import failed, guarded, somebody
from kubectl_kpolicy.output.diagnostics import ExitCode, visible
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster

from . import issuing, journal
from .showing import Way, check_way, hand_over, probe

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from controllers.kube import Access, Client
    from engine.model import Object
    from kubectl_kpolicy.session.identity import Identity


def issue(args: argparse.Namespace) -> int:
    """Issue a code, into a journal where one is named."""
    return guarded(_issue_into_journal if args.journal else _issue, args)


def _issue(args: argparse.Namespace) -> int:
    ttl, way = issuing.read_ttl(args.ttl), _way(args)
    seal = _seal(way)

    async def work(client: Client, access: Access) -> int:
        who = await somebody(client)
        wanted = await _wanted(args, client, access.namespace or "default")
        obj, code = await _made(args, client, wanted, who, ttl)
        _tell(args, obj, f"{wanted.user} may use it for {wanted.policy}/{','.join(wanted.rules)} on {wanted.kind}/{wanted.name} in {wanted.namespace}")  # fmt: skip
        if args.dry_run == "none":
            _hand_over(way, seal(code, obj), [obj])
        return ExitCode.DONE

    return cluster.with_client(args, work)


async def _made(args: argparse.Namespace, client: Client, wanted: issuing.Wanted, who: Identity, ttl: timedelta) -> tuple[Object, str]:  # fmt: skip
    """Make a code and its object; raises EngineError."""
    import secrets

    from engine.codes import issued_code, shown

    code = issued_code(secrets.token_bytes(32))
    obj = issuing.document(
        code, wanted, who.user, cluster.now() + ttl, args.system_namespace, who.groups
    )
    if args.dry_run == "client":
        await issuing.judge(client, obj, cluster.now())
    else:
        obj = await issuing.issue(client, obj, cluster.now(), dry_run=args.dry_run == "server")
    return obj, shown(code)


def _seal(way: Way) -> Callable[[str, Object], str]:
    """Return what a code is handed over as: itself, or sealed to whom the way names; raises EngineError."""
    if not way.recipient:
        return lambda code, _obj: code
    from kubectl_kpolicy.output.structured import json_text

    from .sealing import read_recipient, sealed_about

    key = read_recipient(way.recipient)
    return lambda code, obj: json_text(sealed_about(code, obj, key)).rstrip("\n")


def _hand_over(way: Way, text: str, objects: Sequence[Object]) -> None:
    """Hand a code over; where that fails nobody will ever know it, so that it is said how to make it void."""
    try:
        hand_over(way, text)
    except (EngineError, OSError) as error:
        names = " ".join(one["metadata"]["name"] for one in objects)
        raise EngineError(f"the code is lost: {error}", help=f"kubectl kpolicy otp void {names}") from error  # fmt: skip


def seal_set(args: argparse.Namespace) -> int:
    """Issue several codes for the night in which nobody can be asked, sealed into one file."""
    return guarded(_seal_set, args)


def _seal_set(args: argparse.Namespace) -> int:
    from kubectl_kpolicy.output.structured import json_text, list_of

    from .sealing import read_recipient, sealed_about

    ttl, key = issuing.read_ttl(args.ttl), read_recipient(args.seal_to)
    way = Way(file=args.out_file, recipient=args.seal_to)
    probe(way)
    policy, rules, kind, name = issuing.read_binding(args.bind)

    async def work(client: Client, access: Access) -> int:
        who, space = await somebody(client), access.namespace or "default"
        [target] = await with_kinds(client, [Target(kind, name)])
        sealed: list[Object] = []
        objects: list[Object] = []
        for user in args.for_user:
            for _ in range(args.count):
                wanted = issuing.Wanted(user, policy, rules, target.kind, name, space, args.reason)
                obj, code = await _made(args, client, wanted, who, ttl)
                objects.append(obj)
                sealed.append(sealed_about(code, obj, key))
        _say_sealed(args, objects)
        if args.dry_run == "none":
            _hand_over(way, json_text(list_of(sealed)).rstrip("\n"), objects)
        return ExitCode.DONE

    return cluster.with_client(args, work)


def _say_sealed(args: argparse.Namespace, objects: Sequence[Object]) -> None:
    if not args.quiet:
        tried = "" if args.dry_run == "none" else f" ({args.dry_run} dry run)"
        print(visible(f"{len(objects)} codes sealed{tried} until {objects[-1]['spec']['expiresAt']}"), file=sys.stderr)  # fmt: skip


def lock_status(args: argparse.Namespace) -> int:
    """Print who is not listened to because of wrong codes."""
    return guarded(_lock_status, args)


def _lock_status(args: argparse.Namespace) -> int:
    from kubectl_kpolicy.output.formats import write_list
    from kubectl_kpolicy.output.table import Column, Table

    from .limits import HEADS, advice, standings

    async def work(client: Client, _access: Access) -> list[Object]:
        return await standings(client, args.system_namespace, cluster.now())

    found = [one for one in cluster.with_client(args, work) if not args.users or one["user"] in args.users]  # fmt: skip
    table = Table([Column(head) for head in HEADS])
    for one in found:
        table.add(one["user"], one["state"], str(one["wrong"]["minute"]), str(one["wrong"]["month"]), str(one["offered"]["minute"]))  # fmt: skip
    if found or args.output != "table":
        write_list(sys.stdout, found, table, args.output)
    if not args.quiet:
        print(*filter(None, map(advice, found)), sep="\n", end="", file=sys.stderr)
        if not found:
            print("nobody brought wrong codes lately", file=sys.stderr)
    return ExitCode.DONE


def _way(args: argparse.Namespace) -> Way:
    """Return how the code is handed over; nothing is needed where none is made. Raises EngineError."""
    way = Way(show=args.show, file=args.out_file, recipient=args.seal_to)
    if args.dry_run == "none":
        check_way(way)
        probe(way)
    return way


async def _wanted(args: argparse.Namespace, client: Client, namespace: str) -> issuing.Wanted:
    if args.grant:
        return await issuing.wanted_by_grant(client, args.grant, namespace)
    if not args.for_user:
        raise Misuse("say for whom the code is", help="name a grant, or give --for-user and --bind")  # fmt: skip
    policy, rules, kind, name = issuing.read_binding(args.bind)
    [target] = await with_kinds(client, [Target(kind, name)])
    return issuing.Wanted(args.for_user, policy, rules, target.kind, name, namespace, args.reason)


def _tell(args: argparse.Namespace, obj: Object, text: str) -> None:
    from kubectl_kpolicy.grants.messages import print_objects

    name, tried = obj["metadata"]["name"], "" if args.dry_run == "none" else f" ({args.dry_run} dry run)"  # fmt: skip
    if args.output:
        print_objects([obj], args.output)
    elif not args.quiet:
        print(visible(f"onetimecode.kpolicy.io/{name} issued{tried}: {text}, until {obj['spec']['expiresAt']}"), file=sys.stderr)  # fmt: skip


def _issue_into_journal(args: argparse.Namespace) -> int:
    place, way = journal.place_of(args.journal), _way(args)

    async def work(client: Client, _access: Access) -> int:
        code = journal.journal_code()
        await journal.add(client, place, code, dry_run=args.dry_run == "server")
        print(f"a code was added to journal {args.journal}; whoever holds it can use it once", file=sys.stderr)  # fmt: skip
        hand_over(way, _seal(way)(code, {"metadata": {"name": args.journal.replace("/", "-")}}))
        return ExitCode.DONE

    if args.dry_run != "none":
        print("a dry run makes no code for a journal", file=sys.stderr)
        return ExitCode.DONE
    return cluster.with_client(args, work)


def void(args: argparse.Namespace) -> int:
    """Make codes useless; what is wrong with one keeps no other from it."""

    async def work(client: Client, _access: Access) -> int:
        who, code = await somebody(client), ExitCode.DONE
        for name in (one.removeprefix("onetimecode.kpolicy.io/") for one in args.names):
            try:
                await _void(args, client, name, who.user)
            except EngineError as error:
                code = failed(error)
        return code

    return guarded(lambda given: cluster.with_client(given, work), args)


async def _void(args: argparse.Namespace, client: Client, name: str, user: str) -> None:
    """Make one code void and say so; raises EngineError."""
    from controllers.kube.kinds import ONE_TIME_CODES

    if args.dry_run == "client":
        await client.get(ONE_TIME_CODES, name, args.system_namespace)
    else:
        await issuing.void(client, name, args.system_namespace, user, dry_run=args.dry_run == "server")  # fmt: skip
    tried = "" if args.dry_run == "none" else f" ({args.dry_run} dry run)"
    print(visible(f"onetimecode.kpolicy.io/{name} void{tried}"))


def redeem(args: argparse.Namespace) -> int:
    """Apply the object of a file with a code that is asked for."""
    return guarded(_redeem, args)


def _redeem(args: argparse.Namespace) -> int:
    from pathlib import Path

    from .bringing import bring, carrying, object_in
    from .unsealing import announce, code_of

    try:
        text = sys.stdin.read() if args.filename == "-" else Path(args.filename).read_text()
    except OSError as error:
        raise EngineError(f"cannot read `{args.filename}`: {error.strerror}") from error
    if args.filename == "-" and not args.sealed:
        raise Misuse("standard input is where the code comes from", help="name a file with the object")  # fmt: skip
    obj = object_in(text, args.filename)
    code = code_of(args)
    made = carrying(obj, code)
    if args.dry_run == "client":
        print(visible(f"{str(obj.get('kind')).lower()}/{(obj.get('metadata') or {}).get('name')} would be applied (client dry run)"))  # fmt: skip
        return ExitCode.DONE

    async def work(client: Client, access: Access) -> int:
        if args.sealed and args.dry_run == "none":
            await announce(client, code, args.system_namespace)
        stored = await bring(client, made, access.namespace or "default", dry_run=args.dry_run == "server")  # fmt: skip
        tried = " (server dry run)" if args.dry_run == "server" else ""
        print(visible(f"{str(stored.get('kind')).lower()}/{stored['metadata']['name']} applied{tried}"))  # fmt: skip
        return ExitCode.DONE

    return cluster.with_client(args, work)
