"""The work behind `kubectl kpolicy otp`: one connection for a command, outcome in words or data, exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.errors import EngineError
from kubectl_kpolicy.granting.commands import failed, guarded, somebody
from kubectl_kpolicy.granting.reading import Target, with_kinds
from kubectl_kpolicy.output.diagnostics import ExitCode, visible
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster

from . import issuing, journal
from .showing import Way, check_way, hand_over, probe, read_code

if TYPE_CHECKING:
    import argparse

    from controllers.kube import Access, Client
    from engine.model import Object


def issue(args: argparse.Namespace) -> int:
    """Issue a code, into a journal where one is named."""
    return guarded(_issue_into_journal if args.journal else _issue, args)


def _issue(args: argparse.Namespace) -> int:
    ttl, way = issuing.read_ttl(args.ttl), _way(args)

    async def work(client: Client, access: Access) -> int:
        import secrets

        from engine.codes import issued_code, shown

        who, space = await somebody(client), access.namespace or "default"
        wanted = await _wanted(args, client, space)
        code = issued_code(secrets.token_bytes(32))
        obj = issuing.document(code, wanted, who.user, cluster.now() + ttl, args.system_namespace)
        if args.dry_run != "client":
            obj = await issuing.issue(client, obj, dry_run=args.dry_run == "server")
        _tell(args, obj, f"{wanted.user} may use it for {wanted.policy}/{','.join(wanted.rules)} on {wanted.kind}/{wanted.name} in {wanted.namespace}")  # fmt: skip
        if args.dry_run == "none":
            hand_over(way, shown(code))
        return ExitCode.DONE

    return cluster.with_client(args, work)


def _way(args: argparse.Namespace) -> Way:
    """Return how the code is handed over; nothing is needed where none is made. Raises EngineError."""
    way = Way(show=args.show, file=args.out_file)
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
    from kubectl_kpolicy.granting.telling import print_objects

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
        hand_over(way, code)
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
                await issuing.void(client, name, args.system_namespace, who.user, dry_run=args.dry_run == "server")  # fmt: skip
                print(visible(f"onetimecode.kpolicy.io/{name} void"))
            except EngineError as error:
                code = failed(error)
        return code

    return guarded(lambda given: cluster.with_client(given, work), args)


def redeem(args: argparse.Namespace) -> int:
    """Apply the object of a file with a code that is asked for."""
    return guarded(_redeem, args)


def _redeem(args: argparse.Namespace) -> int:
    from pathlib import Path

    from engine.lang.yaml import load_all

    from .bringing import bring, carrying

    try:
        text = Path(args.filename).read_text()
    except OSError as error:
        raise EngineError(f"cannot read `{args.filename}`: {error.strerror}") from error
    objects = [one.value for one in load_all(text) if isinstance(one.value, dict)]
    if len(objects) != 1:
        raise Misuse(f"`{args.filename}` holds {len(objects)} objects", help="a code is for one")  # fmt: skip
    made = carrying(objects[0], read_code())

    async def work(client: Client, access: Access) -> int:
        stored = await bring(client, made, access.namespace or "default", dry_run=args.dry_run == "server")  # fmt: skip
        tried = " (server dry run)" if args.dry_run == "server" else ""
        print(
            visible(
                f"{str(stored.get('kind')).lower()}/{stored['metadata']['name']} applied{tried}"
            )
        )
        return ExitCode.DONE

    return cluster.with_client(args, work)
