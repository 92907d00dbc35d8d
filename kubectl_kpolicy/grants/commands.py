"""The work behind `kubectl kpolicy grant`: one connection for a command, its outcome in words or data, its exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.grants.circumstances import state_of
from engine.record import record, replace
from kubectl_kpolicy.output.diagnostics import ExitCode, report, visible
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.output.structured import print_objects
from kubectl_kpolicy.session import cluster
from kubectl_kpolicy.session.cluster import ClusterFlags, failed
from kubectl_kpolicy.session.identity import Identity, somebody
from kubectl_kpolicy.session.targets import Target, read_rule, with_kinds

from . import arguments
from .arguments import missing, resolved
from .decisions import decide
from .outcome import ENDS, SETTLED, outcome, requested, settled
from .requests import Ask, hand_in, judge, manifest

if TYPE_CHECKING:
    from controllers.kube import Access, Client
    from engine.grants.blocks import Block
    from engine.model import Object

_ENDED_WELL = frozenset({"active", "scheduled"})


@record
class GrantRequest:
    """What `grant request` and `grant extend` were told, by the names of their flags."""

    connection: ClusterFlags
    rule: str = ""
    targets: tuple[str, ...] = ()
    selector: str = ""
    filename: str = ""
    block: str = ""
    name: str = ""
    length: str = ""
    until: str = ""
    start: str = ""
    window: str = ""
    reason: str = ""
    ticket: str = ""
    uses: int = 0
    idle: str = ""
    approver: tuple[str, ...] = ()
    emergency: bool = False
    output: str = ""
    dry_run: str = "none"
    wait: bool = False
    timeout: str = "0"
    quiet: bool = False


@record
class DecisionRequest:
    """What the verbs that decide about grants were told."""

    connection: ClusterFlags
    names: tuple[str, ...] = ()
    output: str = ""
    dry_run: str = "none"
    wait: bool = False
    timeout: str = "0"
    quiet: bool = False


@record
class Subject:
    """What a grant is asked for: a policy, its rules, objects, and the documents that named these."""

    policy: str
    rules: tuple[str, ...]
    targets: tuple[Target, ...]
    documents: tuple[Object, ...] = ()


def request(flags: GrantRequest) -> int:
    """Ask for a grant for each target; raises EngineError."""
    base, wanted = _asked(flags)

    async def work(client: Client, access: Access) -> int:
        who = await somebody(client)
        asked = []
        for one in await with_kinds(client, wanted):
            place = one.namespace or base.namespace or access.namespace or "default"
            policy, rules = await resolved(client, (base.policy, base.rules), place)
            ask = replace(base, kind=one.kind, name=one.name, selector=one.selector)
            ask = replace(ask, policy=policy, rules=rules, namespace=place)
            asked.append(manifest(ask, who))
        return await _ask(flags, client, asked)

    return cluster.with_client(_patient(flags), work)


def _patient(flags: GrantRequest | DecisionRequest) -> ClusterFlags:
    """Return how to connect: for as long as it takes where somebody waits."""
    return replace(flags.connection, request_timeout="0") if flags.wait else flags.connection


def _asked(flags: GrantRequest) -> tuple[Ask, tuple[Target, ...]]:
    """Return the request without its targets, and these; raises EngineError."""
    flags = _within_window(flags)
    start = arguments.read_instant(flags.start)
    length = arguments.read_length(flags.length, flags.until, start or cluster.now())
    subject = asked_of(flags)
    base = Ask(
        policy=subject.policy,
        rules=subject.rules,
        kind="",
        name="",
        namespace=flags.connection.namespace,
        length=length,
        reason=flags.reason,
        ticket=flags.ticket,
        start=flags.start,
        uses=flags.uses,
        idle=flags.idle,
        approvers=flags.approver,
        emergency=flags.emergency,
        block=flags.block,
    )
    return base, subject.targets


def _within_window(flags: GrantRequest) -> GrantRequest:
    """Return a request with the start and the end that its window says; raises EngineError."""
    if not flags.window:
        return flags
    if flags.start or flags.until:
        raise Misuse("--window says start and end", help="leave out --start and --until, or --window")  # fmt: skip
    start, until, length = arguments.read_window(flags.window)
    return replace(flags, start=start, until=until, length=length)


def asked_of(flags: GrantRequest) -> Subject:
    """Return policy, rules and targets that the words name; raises EngineError."""
    if flags.block:
        if flags.rule or flags.targets or flags.selector or flags.filename:
            raise Misuse("a denial says itself what it is about", help="leave out everything beside --block ID but --for, --reason and the like")  # fmt: skip

        block = _read_block(flags.block)
        target = Target(block.kind, block.name, block.namespace)
        return Subject(block.policy, block.rules, (target,))
    policy, rules = read_rule(flags.rule)
    documents = _documents(flags.filename) if flags.filename else []
    found = arguments.read_targets(flags.targets, flags.selector, documents)
    return Subject(policy, rules, tuple(found), tuple(documents))


def _documents(name: str) -> list[Object]:
    from kubectl_kpolicy.session.sources import read_documents

    return [one.value for one in read_documents([name]) if isinstance(one.value, dict)]


async def _ask(flags: GrantRequest, client: Client, asked: list[Object]) -> int:
    """Judge all requests, then hand in all of them: either every one can be made or none is."""
    policies = [await judge(client, obj, cluster.now()) for obj in asked]
    for text in [text for obj in asked for text in await missing(client, obj)]:
        report(EngineError(text, help="the grant covers nothing until there is one"), word="warning")  # fmt: skip
    made = asked
    if flags.dry_run != "client":
        made = [await hand_in(client, obj, dry_run=flags.dry_run == "server") for obj in asked]
    tried = "" if flags.dry_run == "none" else flags.dry_run
    if not flags.output:
        for obj, policy in zip(made, policies, strict=True):
            print(requested(obj, policy, tried))
    if flags.wait and not tried:
        made = [await _wait(flags, client, obj) for obj in made]
    if flags.output:
        print_objects(made, flags.output)
    return _verdict(made) if flags.wait and not tried else ExitCode.DONE


async def _wait(
    flags: GrantRequest | DecisionRequest,
    client: Client,
    obj: Object,
    ends: frozenset[str] = SETTLED,
) -> Object:
    seconds = cluster.seconds_of(flags.timeout)
    found = await settled(client, obj, seconds, lambda state: _say(flags, f"state: {state}"), ends)
    _say(flags, outcome(found))
    return found


def _say(flags: GrantRequest | DecisionRequest, text: str) -> None:
    if not flags.quiet:
        print(text, file=sys.stderr)


def _verdict(made: list[Object]) -> ExitCode:
    states = {state_of(obj) for obj in made}
    if states <= _ENDED_WELL:
        return ExitCode.DONE
    return ExitCode.REFUSED if "denied" in states else ExitCode.GONE


def decide_all(flags: DecisionRequest, verdict: str, comment: str) -> int:
    """Make one decision about each grant that is named; what is wrong with one keeps no other from its own. Raises EngineError."""

    async def work(client: Client, access: Access) -> int:
        who = await somebody(client)
        found, code = [], ExitCode.DONE
        for name in flags.names:
            place = (access.namespace or "default", arguments.bare(name))
            try:
                found.append(await _decided(flags, client, place, verdict, who, comment))
            except EngineError as error:
                code = failed(error)
        if flags.output and found:
            print_objects(found, flags.output)
        return code

    return cluster.with_client(_patient(flags), work)


async def _decided(
    flags: DecisionRequest, client: Client, place: tuple[str, str], verdict: str, who: Identity, comment: str
) -> Object:  # fmt: skip
    if flags.dry_run == "client":
        from .decisions import checked

        obj = await checked(client, place, verdict, who)
    else:
        obj = await decide(client, place, verdict, who, comment, dry_run=flags.dry_run == "server")
    if not flags.output:
        tried = "" if flags.dry_run == "none" else f" ({flags.dry_run} dry run)"
        print(visible(f"grant.kpolicy.io/{place[1]}: {verdict} by {who.user}{tried}"))
    waits = flags.wait and flags.dry_run == "none" and verdict in ENDS
    return await _wait(flags, client, obj, ENDS[verdict]) if waits else obj


def extend(flags: GrantRequest) -> int:
    """Ask for a grant that follows another one; raises EngineError."""

    async def work(client: Client, access: Access) -> int:
        from .requests import Longer, successor

        place = access.namespace or "default"
        obj = await successor(client, (place, arguments.bare(flags.name)), await somebody(client), Longer(flags.length, flags.reason, flags.ticket), cluster.now())  # fmt: skip
        return await _ask(flags, client, [obj])

    return cluster.with_client(_patient(flags), work)


def _read_block(text: str) -> Block:
    """Read what a denial names, checked as if it had been typed; raises EngineError.

    Whether the engine signed it is checked by the API server's side, which has the key, when the request is tried.
    """
    from engine.grants.blocks import read_block_id

    found = read_block_id(text)
    if found is None:
        raise Misuse(f"`{text[:40]}` is no id of a denial", help="copy it from the denial, or name POLICY/RULE and KIND/NAME")  # fmt: skip
    return found
