"""`kubectl kpolicy audit`: the records of who did what, read, checked for tampering, and exported."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine import vocabulary
from engine.record import replace

from .flags import Arguments, Flags, Verbs, cluster_flags, guarded, list_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.kube import Access, Client
    from engine.audit import Checkpoint, Segment
    from kubectl_kpolicy.output.rows import Row

    from .selection import ListRequest


def add_arguments(flags: Flags) -> None:
    """Add the command's verbs."""
    verbs = Verbs(flags, "audit log --actor alice --since 24h", usual="log")
    log = verbs.listing("log", "list records, the newest first", _log, "OBJECT")
    log.text("--actor", "ACTOR", "only records of this actor")
    log.text("--object", "OBJECT", "only records about this object")
    log.text("--since", "SINCE", "only records newer than this")
    log.text("--verb --action", "VERB", "only this action, such as approve, use, revoke", dest="action")  # fmt: skip
    log.switch("-f --follow", "keep running and print new records", dest="watch")
    check = verbs.add("verify", "verify the chain of records; exit with 1 when it was tampered with", _verify)  # fmt: skip
    check.text("--checkpoint", "SEQ:HASH|FILE", "head of the chain, as kept elsewhere")
    check.text("-f --filename", "FILE", "check what `audit export` wrote instead of a cluster; - is standard input")  # fmt: skip
    check.text("--from", "SEQ", "report only what is wrong from this record on", dest="least", type=int, default=0)  # fmt: skip
    check.switch("--seals", "also check the seals; needs the right to read the controllers' Secret")
    check.text("--system-namespace", "NAME", "where the controllers run (kyverno)", default="kyverno")  # fmt: skip
    check.replay()
    check.output("table", "json")
    export = verbs.add("export", "export all records for other systems", _export)
    export.choice("--format", ("jsonl", "csv", "cef"), "format of the file")
    export.text("--where", "FILTER", "only records that fit")
    export.text("--since", "DURATION", "only what is newer than this")
    export.replay()


def _log(args: Arguments) -> int:
    from kubectl_kpolicy.cluster.audit import UNPROVEN

    from .lists import run_list

    terms = [f"verb={args.action}"] if args.action else []
    terms += [f'(actor="{args.actor}" or actor="{args.actor}{UNPROVEN}")'] if args.actor else []
    terms += [f'object="*{args.object}*"'] if args.object else []
    terms += [f"time<{args.since}"] if args.since else []
    # entries of the journal have no number; of records, several have the same second
    usual = ("time" if args.journal else "seq") if args.watch else "-time" if args.journal else ""
    order = args.sort_by or usual
    flags = _everywhere(list_request(args, *terms, sort_by=order))
    return run_list(flags, "audit", named=_is_about)


def _is_about(row: Row, names: Sequence[str]) -> bool:
    return not names or any(name in row.text("object") for name in names)


def _everywhere(flags: ListRequest) -> ListRequest:
    """Return a request for records of all namespaces, whichever is named: they are about objects of any."""
    return replace(flags, connection=replace(flags.connection, all_namespaces=True))


@guarded
def _verify(args: Arguments) -> int:
    from engine.audit import segment_of, verify
    from kubectl_kpolicy.cluster.audit import extent, is_unproven
    from kubectl_kpolicy.output.misuse import Misuse
    from kubectl_kpolicy.output.structured import json_text

    from .lists import check_needs, listing_of, read_world

    kept = _checkpoints(args.checkpoint)
    if args.filename:
        if args.seals:
            raise Misuse("an export holds no seals", help="leave out --seals, or -f to check the cluster")  # fmt: skip
        segments = [_exported(args.filename)]
    else:
        listing = listing_of("audit")
        world, _ = read_world(_everywhere(list_request(args, output="table")), listing)
        check_needs(world, listing)
        segments = [segment_of(obj) for obj in world.objects("auditsegments")]
    key = _seal_key(args) if args.seals else None
    found = verify(segments, kept, key)
    findings = [one for one in found if one.seq >= args.least]
    checked = _extent(args)
    claimed = sum(is_unproven(record) for one in segments for record in one.records)
    if args.output == "json":
        rows = [{"kind": one.kind, "seq": one.seq, "segment": one.segment, "message": one.message} for one in findings]  # fmt: skip
        sys.stdout.write(json_text({"apiVersion": vocabulary.KPOLICY, "kind": "AuditVerdict", "whole": not findings, "findings": rows, "unproven": claimed, **checked}))  # fmt: skip
        return int(bool(findings))
    for one in findings:
        print(f"{one.kind} at record {one.seq} in {one.segment}: {one.message}")
    print(extent(segments, len(findings)))
    if claimed:
        print(f"{claimed} of them name an actor whom nobody proved: what they tell was seen in the cluster, who did it was not")  # fmt: skip
    if not args.quiet:
        print(f"checked: {'; '.join(checked['checked'])}", *(f"not checked: {text}" for text in checked["notChecked"]), sep="\n", file=sys.stderr)  # fmt: skip
    return int(bool(findings))


def _exported(name: str) -> Segment:
    """Read what `audit export` wrote, a record a line, as one segment; raises EngineError."""
    from pathlib import Path

    import orjson

    from engine.audit import Segment
    from engine.errors import DocumentError, Location, reason_of

    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as lines:
            found = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    except OSError as error:
        raise DocumentError(f"cannot read `{name}`: {reason_of(error)}") from error
    records = []
    for number, line in found:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise DocumentError("this is no record", at=Location(name, number), help="write the file with `audit export --format jsonl`") from error  # fmt: skip
        if not isinstance(value, dict) or "hash" not in value:
            raise DocumentError("this is no record of the chain", at=Location(name, number), help="write the file with `audit export --format jsonl`")  # fmt: skip
        records.append(value)
    return Segment(name, tuple(records))


_SEALS = "seals, so that whoever may write the segments could have written the whole chain anew (--seals, which needs the controllers' Secret)"
_TAIL = "the end, so that a tail that was cut off is not seen (--checkpoint, with a head that was kept elsewhere)"


def _extent(args: Arguments) -> dict[str, list[str]]:
    """Return in words what a verdict rests on, and what it says nothing about."""
    parts = [("the numbers, hashes and links of all records", ""), ("the seals of all segments" if args.seals else "", _SEALS),
             ("the heads that were kept elsewhere" if args.checkpoint else "", _TAIL)]  # fmt: skip
    return {"checked": [done for done, _ in parts if done], "notChecked": [why for done, why in parts if not done]}  # fmt: skip


def _seal_key(args: Arguments) -> bytes:
    """Return the key of the seals from the Secret that all replicas share; raises KubeError."""
    import hmac

    from controllers.kube.kinds import SECRETS
    from kubectl_kpolicy.session import cluster

    async def work(client: Client, _access: Access) -> bytes:
        from base64 import b64decode

        secret = await client.get(SECRETS, "kpolicy-review-key", args.system_namespace)
        return b64decode(secret["data"]["key"])

    return hmac.digest(
        cluster.with_client(cluster_flags(args), work), b"kpolicy audit seal", "sha256"
    )


def _checkpoints(text: str) -> list[Checkpoint]:
    """Read `SEQ:HASH`, or a file with one on each line; raises EngineError."""
    from pathlib import Path

    from engine.audit import Checkpoint
    from kubectl_kpolicy.output.misuse import Misuse

    if not text:
        return []
    lines = Path(text).read_text("utf-8", "replace").split() if Path(text).exists() else [text]
    found = []
    for line in lines:
        seq, colon, digest = line.partition(":")
        if not colon or not seq.isdigit():
            raise Misuse(f"cannot read `{line}` as a checkpoint", help="it is SEQ:HASH")
        found.append(Checkpoint(int(seq), digest))
    return found


@guarded
def _export(args: Arguments) -> int:
    from kubectl_kpolicy.cluster.audit import stored
    from kubectl_kpolicy.output.listings import write_rows
    from kubectl_kpolicy.output.reports import cef
    from kubectl_kpolicy.output.rows import sort_rows

    from .lists import check_needs, listing_of, read_world, selected

    listing = listing_of("audit")
    since = (f"time<{args.since}",) if args.since else ()
    flags = _everywhere(list_request(args, *since))
    world, now = read_world(flags, listing)
    check_needs(world, listing)
    chosen = selected(
        flags, listing.rows(world, now), listing, now, lambda row: row.cells["seq"] is not None
    )
    rows = [replace(row, object=stored(row)) for row in sort_rows(chosen, listing, ("seq",))]
    if args.format == "cef":
        sys.stdout.writelines(f"{cef(row)}\n" for row in rows)
    else:
        write_rows(sys.stdout, rows, listing, args.format, now)
    return 0
