"""Changes to exceptions and clean-ups: one request each, with its precondition; whoever asks for one is named in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import kinds
from controllers.kube.discovery import Discovery
from controllers.kube.errors import KubeError
from engine import vocabulary
from engine.cleanup.holds import HoldState
from engine.fields import word
from kubectl_kpolicy.cluster.celkinds import is_cel
from kubectl_kpolicy.grants.requests import duration_of
from kubectl_kpolicy.output.time_format import absolute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object
    from kubectl_kpolicy.output.rows import Row

    from .executor import ActionExecutor

_HOLDS = (vocabulary.CLEANUP_PAUSE, vocabulary.CLEANUP_SKIP, vocabulary.CLEANUP_AFTER)


async def revoke_exception(doer: ActionExecutor, row: Row, form: Mapping[str, str]) -> str:
    """Delete just this exception: one of the same name made meanwhile is left alone."""
    name, namespace = row.text("name"), row.text("namespace")
    uid = word(row.object, "metadata", "uid")
    await doer.client.delete(_exception_kind(row.object), name, namespace, uid=uid, dry_run=bool(form.get("dry-run")))  # fmt: skip
    return f"revoked {namespace}/{name}"


async def postpone(doer: ActionExecutor, row: Row, form: Mapping[str, str]) -> str:
    """Let a clean-up happen later, by the length in `for`; raises EngineError."""
    _check_engine(doer, "postpone", row)
    at = absolute(doer.now() + duration_of(form.get("for", "")))
    await _annotate(doer, row, form, {vocabulary.CLEANUP_AFTER: at})
    return f"not before {at}"


async def skip(doer: ActionExecutor, row: Row, form: Mapping[str, str]) -> str:
    """Pass over the next run of a clean-up; raises EngineError."""
    _check_engine(doer, "skip", row)
    run = absolute(row.moment("due")) or "next"
    await _annotate(doer, row, form, {vocabulary.CLEANUP_SKIP: run})
    return "the next run passes it over"


async def pause(doer: ActionExecutor, row: Row, form: Mapping[str, str]) -> str:
    """Pause a clean-up, or lift what holds it: a pause when asked again, everything when asked to resume."""
    lifted = _lifted(row.text("state"), is_resumed=bool(form.get("resume")))
    _check_engine(doer, "resume" if lifted else "pause", row)
    await _annotate(doer, row, form, lifted or {vocabulary.CLEANUP_PAUSE: "true"})
    return "resumed" if lifted else "paused"


def _lifted(state: str, *, is_resumed: bool) -> dict[str, str | None]:
    """Return the annotations that go; none where there is nothing to lift."""
    if is_resumed and state in set(HoldState):
        return dict.fromkeys(_HOLDS)
    return {vocabulary.CLEANUP_PAUSE: None} if state == HoldState.PAUSED else {}


def _check_engine(doer: ActionExecutor, verb: str, row: Row) -> None:
    if doer.world is not None:
        from kubectl_kpolicy.cluster.health import check_engine

        check_engine(doer.world, verb, [row])


async def note_run(doer: ActionExecutor, row: Row, form: Mapping[str, str]) -> str:
    """Write down that somebody runs a policy by hand; deleting is done elsewhere."""
    await _annotate(doer, row, form, {vocabulary.CLEANUP_RUN: absolute(doer.now())})
    return "noted"


async def _annotate(
    doer: ActionExecutor, row: Row, form: Mapping[str, str], annotations: dict[str, str | None]
) -> None:
    """Change annotations; each says who did it and why after its value, which is what the audit trail takes down."""
    kind = await _kind_of(doer, row)
    reason = form.get("reason", "")
    told = {name: value and f"{value} {doer.user}: {reason}" for name, value in annotations.items()}
    noted = {**told, vocabulary.CLEANUP_REASON: reason, vocabulary.CLEANUP_CHANGED_BY: doer.user}
    metadata: dict[str, object] = {"annotations": noted}
    if uid := word(row.object, "metadata", "uid"):
        metadata["uid"] = uid
    await doer.client.patch(kind, word(row.object, "metadata", "name"), row.text("namespace"), {"metadata": metadata}, dry_run=bool(form.get("dry-run")))  # fmt: skip


async def _kind_of(doer: ActionExecutor, row: Row) -> kinds.Kind:
    """Return the kind of the object behind a row; raises KubeError."""
    name = word(row.object, "kind")
    for kind in (kinds.CLEANUP_POLICIES, kinds.CLUSTER_CLEANUP_POLICIES):
        if kind.kind == name:
            return kind
    discovery = Discovery(doer.client)
    await discovery.refresh()
    found = discovery.find(word(row.object, "apiVersion"), name)
    if found is None:
        raise KubeError(f"the server has no {name}")
    return found


def _exception_kind(obj: Object) -> kinds.Kind:
    """Return the kind of an exception: classic ones and those from policies in CEL are called the same."""
    if not is_cel(obj):
        return kinds.POLICY_EXCEPTIONS
    version = word(obj, "apiVersion").rpartition("/")[2]
    return kinds.Kind(
        kinds.CEL_EXCEPTIONS.group, version, kinds.CEL_EXCEPTIONS.plural, kinds.CEL_EXCEPTIONS.kind
    )
