"""The story of a grant from request to end, as Markdown for a ticket or as data: who, why, what, when, decisions, records."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from controllers.kube.errors import KubeError
from controllers.kube.kinds import AUDIT_SEGMENTS, EVENTS, GRANTS
from controllers.store.events import ADMISSION, SKIPPED
from engine.audit import segment_of
from engine.errors import EngineError
from engine.grants.cause import exception_name
from engine.grants.circumstances import state_of
from engine.grants.subjects import subject_text
from engine.record import record
from kubectl_kpolicy.output.cells import plain
from kubectl_kpolicy.output.structured import write_object
from kubectl_kpolicy.session import cluster

from .arguments import bare

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controllers.kube import Access, Client
    from engine.model import Block, Object
    from kubectl_kpolicy.session.cluster import ClusterFlags


@record
class ReportRequest:
    """What `grant report` was told."""

    connection: ClusterFlags
    name: str
    output: str = ""


def story(flags: ReportRequest) -> int:
    """Print the story of the grant that is named; raises EngineError."""

    async def work(client: Client, access: Access) -> tuple[Object, list[Block], list[Block]]:
        obj = await client.get(GRANTS, bare(flags.name), access.namespace or "default")
        return obj, await records_about(client, obj), await let_through(client, obj)

    data = told(*cluster.with_client(flags.connection, work))
    if flags.output in ("json", "yaml"):
        write_object(sys.stdout, data, flags.output)
    else:
        sys.stdout.writelines(f"{plain(line)}\n" for line in _markdown(data))
    return 0


async def records_about(client: Client, obj: Object) -> list[Block]:
    """Return the audit records about a grant, the oldest first; none where they cannot be read."""
    try:
        page = await client.list_all(AUDIT_SEGMENTS)
    except KubeError:
        return []
    metadata, found = obj["metadata"], []
    for one in page.items:
        try:
            records = segment_of(one).records
        except EngineError:
            continue
        found += [record for record in records if _is_about(record, metadata)]
    return sorted(found, key=lambda record: int(record.get("seq") or 0))


async def let_through(client: Client, obj: Object) -> list[Block]:
    """Return the requests that a grant let through, the first first, by the Events that the API server still has; none where it may not be asked."""
    metadata = obj["metadata"]
    named = f"reason={SKIPPED},involvedObject.name={exception_name(metadata['name'])}"
    try:
        page = await client.list_all(EVENTS, metadata["namespace"], field_selector=named)
    except KubeError:
        return []
    found = [
        {"time": one.get("lastTimestamp") or one.get("eventTime"), "count": one.get("count") or 1, "message": one.get("message")}
        for one in page.items
        if one.get("reportingComponent") == ADMISSION
    ]  # fmt: skip
    return sorted(found, key=lambda one: str(one["time"]))


def _is_about(record: Block, metadata: Object) -> bool:
    about = record.get("object")
    return isinstance(about, dict) and (about.get("kind"), about.get("namespace"), about.get("name")) == (
        "Grant", metadata.get("namespace"), metadata.get("name"),
    )  # fmt: skip


def told(obj: Object, records: list[Block], admissions: list[Block]) -> dict[str, Any]:
    """Return the story as data."""
    spec, status = obj["spec"], obj.get("status") or {}
    return {
        "apiVersion": GRANTS.api_version,
        "kind": "GrantReport",
        "metadata": {key: obj["metadata"].get(key) for key in ("name", "namespace", "uid", "creationTimestamp")},
        "state": state_of(obj),
        "policy": spec.get("policy"),
        "rules": spec.get("rules") or ["*"],
        "target": spec.get("target"),
        "requester": spec.get("requester"),
        "reason": spec.get("reason", ""),
        "ticket": spec.get("ticket", ""),
        "emergency": bool(spec.get("emergency")),
        "duration": spec.get("duration"),
        "startsAt": status.get("startsAt", ""),
        "expiresAt": status.get("expiresAt", ""),
        "endedAt": status.get("endedAt", ""),
        "endedBy": status.get("endedBy", ""),
        "message": status.get("message", ""),
        "uses": status.get("uses", 0),
        "admissions": admissions,
        "decisions": spec.get("decisions") or [],
        "records": records,
    }  # fmt: skip


def _markdown(data: dict[str, Any]) -> Iterator[str]:
    target = data["target"] or {}
    yield f"# Grant {data['metadata']['namespace']}/{data['metadata']['name']}: {data['state']}"
    yield ""
    yield f"- rule: {subject_text(data['policy'], data['rules'])}"
    yield f"- object: {target.get('kind')}/{target.get('name') or '*'}"
    yield f"- requester: {data['requester']}{' (emergency)' if data['emergency'] else ''}"
    yield f"- reason: {data['reason']}{f' ({ticket})' if (ticket := data['ticket']) else ''}"
    yield f"- time: {data['startsAt'] or 'not begun'} to {data['endedAt'] or data['expiresAt'] or 'open'}, {data['duration']} asked for"
    yield f"- uses: {data['uses']}"
    yield ""
    yield from _table({"who": "by", "decided": "verdict", "said": "comment"}, data["decisions"])
    for heads, rows in (
        ({"time": "time", "times": "count", "let through": "message"}, data["admissions"]),
        ({"seq": "seq", "time": "time", "actor": "actor", "what": "verb", "result": "result"}, data["records"]),
    ):  # fmt: skip
        if rows:
            yield ""
            yield from _table(heads, rows)


def _table(columns: Mapping[str, str], rows: Sequence[Block]) -> Iterator[str]:
    """Yield a table in Markdown; `columns` are heads, each with the field below it."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{' --- |' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(_cell(row.get(name)) for name in columns.values())} |"


def _cell(value: Any) -> str:
    return str("" if value is None else value).replace("|", "\\|").replace("\n", " ")
