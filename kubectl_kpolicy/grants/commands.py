"""The work behind `kubectl kpolicy grant`: one connection for a command, its outcome in words or data, its exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.grants.circumstances import state_of
from kubectl_kpolicy.output.diagnostics import ExitCode, report, visible
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster

from . import arguments, messages
from .decisions import decide
from .errors import Over, Refused
from .requests import Ask, hand_in, judge, manifest
from .wait import ENDS, SETTLED, TimedOut, settled

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from controllers.kube import Access, Client
    from engine.model import Object
    from kubectl_kpolicy.session.identity import Identity

_ENDED_WELL = frozenset({"active", "scheduled"})


def guarded(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run a command; print what speaks against it and return the exit code for that."""
    try:
        return run(args)
    except EngineError as error:
        return failed(error)


def failed(error: EngineError) -> ExitCode:
    """Print an error and return its exit code."""
    if isinstance(error, Refused):
        print(visible(error.message), file=sys.stderr)
        return ExitCode.REFUSED
    report(error)
    if isinstance(error, Over):
        return ExitCode.GONE
    return ExitCode.TIMEOUT if isinstance(error, TimedOut) else cluster.exit_code(error)


async def somebody(client: Client) -> Identity:
    """Return who we are to the server; raises EngineError where it does not say, for a grant needs a name."""
    from kubectl_kpolicy.session.identity import who_am_i

    found = await who_am_i(client)
    if not found.user:
        raise EngineError("the server does not say who you are", help="SelfSubjectReview needs Kubernetes 1.28 or later")  # fmt: skip
    return found


def request(args: argparse.Namespace) -> int:
    """Ask for a grant for each target."""
    return guarded(_request, args)


def _request(args: argparse.Namespace) -> int:
    base, targets = _asked(args)

    async def work(client: Client, access: Access) -> int:
        who = await somebody(client)
        found = arguments.asks(base, await arguments.with_kinds(client, targets))
        place = access.namespace or "default"
        asked = [manifest(one, who) for one in found]
        for obj in asked:
            obj["metadata"]["namespace"] = obj["metadata"]["namespace"] or place
        return await _ask(args, client, asked)

    if getattr(args, "wait", False):
        args.request_timeout = "0"
    return cluster.with_client(args, work)


def _asked(args: argparse.Namespace) -> tuple[Ask, list[arguments.Target]]:
    """Return the request without its targets, and these; raises EngineError."""
    start = arguments.read_instant(args.start)
    length = arguments.read_length(args.length, args.until, start or cluster.now())
    policy, rules, targets = asked_of(args)
    base = Ask(
        policy=policy,
        rules=rules,
        kind="",
        name="",
        namespace=args.namespace,
        length=length,
        reason=args.reason,
        ticket=args.ticket,
        start=args.start,
        uses=args.uses,
        idle=args.idle,
        approvers=tuple(args.approver),
        emergency=args.emergency,
        block=args.block,
    )
    return base, targets


def asked_of(args: argparse.Namespace) -> tuple[str, tuple[str, ...], list[arguments.Target]]:
    """Return policy, rules and targets that the words name; raises EngineError."""
    if args.block:
        if args.rule or args.targets or args.selector or args.filename:
            raise Misuse("a denial says itself what it is about", help="leave out everything beside --block ID but --for, --reason and the like")  # fmt: skip
        from .blocks import read_block

        try:
            block = read_block(args.block)
        except EngineError as error:
            raise Misuse(error.message, help=error.help) from error
        target = arguments.Target(block.kind, block.name, block.namespace)
        return block.policy, block.rules, [target]
    policy, rules = arguments.read_rule(args.rule)
    args.documents = _documents(args.filename) if args.filename else []
    return policy, rules, arguments.read_targets(args.targets, args.selector, args.documents)


def _documents(name: str) -> list[Object]:
    from engine.lang.yaml import load_all

    text = sys.stdin.read() if name == "-" else _text(name)
    return [one.value for one in load_all(text) if isinstance(one.value, dict)]


def _text(name: str) -> str:
    from pathlib import Path

    try:
        return Path(name).read_text()
    except OSError as error:
        raise EngineError(f"cannot read `{name}`: {error.strerror}") from error


async def _ask(args: argparse.Namespace, client: Client, asked: list[Object]) -> int:
    """Judge all requests, then hand in all of them: either every one can be made or none is."""
    policies = [await judge(client, obj, cluster.now()) for obj in asked]
    made = asked
    if args.dry_run != "client":
        made = [await hand_in(client, obj, dry_run=args.dry_run == "server") for obj in asked]
    tried = "" if args.dry_run == "none" else args.dry_run
    if not args.output:
        for obj, policy in zip(made, policies, strict=True):
            print(messages.requested(obj, policy, tried))
    if getattr(args, "wait", False) and not tried:
        made = [await _wait(args, client, obj) for obj in made]
    if args.output:
        messages.print_objects(made, args.output)
    return _verdict(made) if getattr(args, "wait", False) and not tried else ExitCode.DONE


async def _wait(
    args: argparse.Namespace, client: Client, obj: Object, ends: frozenset[str] = SETTLED
) -> Object:
    seconds = cluster.seconds_of(args.timeout)
    found = await settled(client, obj, seconds, lambda state: _say(args, f"state: {state}"), ends)
    _say(args, messages.outcome(found))
    return found


def _say(args: argparse.Namespace, text: str) -> None:
    if not args.quiet:
        print(text, file=sys.stderr)


def _verdict(made: list[Object]) -> ExitCode:
    states = {state_of(obj) for obj in made}
    if states <= _ENDED_WELL:
        return ExitCode.DONE
    return ExitCode.REFUSED if "denied" in states else ExitCode.GONE


def decide_all(args: argparse.Namespace, verdict: str, comment: str) -> int:
    """Make one decision about each grant that is named; what is wrong with one keeps no other from its own."""
    if getattr(args, "wait", False):
        args.request_timeout = "0"

    async def work(client: Client, access: Access) -> int:
        who = await somebody(client)
        found, code = [], ExitCode.DONE
        for name in args.names:
            place = (access.namespace or "default", arguments.bare(name))
            try:
                found.append(await _decided(args, client, place, verdict, who, comment))
            except EngineError as error:
                code = failed(error)
        if args.output and found:
            messages.print_objects(found, args.output)
        return code

    return guarded(lambda given: cluster.with_client(given, work), args)


async def _decided(
    args: argparse.Namespace, client: Client, place: tuple[str, str], verdict: str, who: Identity, comment: str
) -> Object:  # fmt: skip
    if args.dry_run == "client":
        from .decisions import checked

        obj = await checked(client, place, verdict, who)
    else:
        obj = await decide(client, place, verdict, who, comment, dry_run=args.dry_run == "server")
    if not args.output:
        tried = "" if args.dry_run == "none" else f" ({args.dry_run} dry run)"
        print(visible(f"grant.kpolicy.io/{place[1]}: {verdict} by {who.user}{tried}"))
    return await _wait(args, client, obj, ENDS[verdict]) if _waits(args, verdict) else obj


def _waits(args: argparse.Namespace, verdict: str) -> bool:
    return getattr(args, "wait", False) and args.dry_run == "none" and verdict in ENDS


def extend(args: argparse.Namespace) -> int:
    """Ask for a grant that follows another one."""
    if args.wait:
        args.request_timeout = "0"

    async def work(client: Client, access: Access) -> int:
        from .requests import successor

        place = access.namespace or "default"
        obj = await successor(client, (place, arguments.bare(args.name)), await somebody(client), args, cluster.now())  # fmt: skip
        return await _ask(args, client, [obj])

    return guarded(lambda given: cluster.with_client(given, work), args)


def report_one(args: argparse.Namespace) -> int:
    """Print the story of a grant."""
    from .report import story

    return guarded(story, args)


def preview(args: argparse.Namespace) -> int:
    """Print what would be let through."""
    from .reach import show

    return guarded(show, args)
