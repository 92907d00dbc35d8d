"""The `check` command: what policies say about objects in files, as the rows of `violations`, and a verdict for pipelines."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import vocabulary
from engine.collector import collector_off
from engine.errors import DocumentError, EngineError, Location, reason_of
from engine.fields import part
from engine.record import record, replace
from kubectl_kpolicy.cluster.violations import is_failure, rows_of_report
from kubectl_kpolicy.output.diagnostics import report
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster

from .inputs import ApplyInputs, ApplyRequest, check_named, load_inputs, policies_named
from .names import namespace_of, reference
from .processor import Processor
from .rows import Row as Result
from .rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.model import Object
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.session.cluster import ClusterFlags

    from .incluster import Live


FROM_CLUSTER = "cluster"


@record
class CheckRequest:
    """What `check` was told: files, policies and exceptions (`cluster` stands for those in force), and which of them."""

    connection: ClusterFlags
    filename: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    policy: str = "*"
    baseline: str = ""
    as_of: str = ""
    values_file: str = ""
    set: tuple[str, ...] = ()
    userinfo: str = ""
    registry: bool = False
    output: str = ""


@record
class Checked:
    """What came of a check: all rows, those that no baseline knows, and whether something could not be read.

    `places` are those of objects in files, by `namespace/Kind/name`, for the formats that name them.
    """

    rows: tuple[Row, ...]
    new: tuple[Row, ...]
    known: frozenset[Any]
    is_broken: bool
    places: Mapping[str, Location]


def check(flags: CheckRequest) -> Checked:
    """Judge the files that a request names; raises EngineError."""
    if not flags.filename:
        raise Misuse("say which files to check", help="-f FILE, -f FOLDER or -f - for standard input")  # fmt: skip
    known = frozenset(read_baseline(flags.baseline)) if flags.baseline else frozenset()
    with collector_off(), _connection(flags) as live:
        return _check(flags, live, known)


def _connection(flags: CheckRequest) -> AbstractContextManager[Live | None]:
    if FROM_CLUSTER not in (*flags.policies, *flags.exceptions):
        return nullcontext()
    from .incluster import opened

    check_named(_as_apply(flags))
    cluster.instant_of(flags.as_of)
    return opened(flags.connection, registry=flags.registry)


def _check(flags: CheckRequest, live: Live | None, known: frozenset[Any]) -> Checked:
    inputs = _inputs(flags, live)
    processor = inputs.processor(policies_named(inputs.loaded, flags.policy))
    for problem in processor.problems:
        report(problem.error)
    if not inputs.objects:
        report(EngineError("there are no objects in the files"), word="warning")
    rows = tuple(row for obj in inputs.objects for row in _judged(processor, obj))
    new = tuple(row for row in rows if identity_of(row.object) not in known)
    return Checked(
        rows, new, known, bool(inputs.loaded.problems or processor.problems), inputs.places
    )


def _inputs(flags: CheckRequest, live: Live | None) -> ApplyInputs:
    """Load what the flags name, the rules of the cluster among it; complain of what cannot be read."""
    inputs = load_inputs(_as_apply(flags), cluster.instant_of(flags.as_of), strict=False)
    if flags.connection.namespace:
        space = flags.connection.namespace
        places = {key.replace("default/", f"{space}/", 1) if key.startswith("default/") else key: at for key, at in inputs.places.items()}  # fmt: skip
        inputs = replace(inputs, objects=_placed(inputs.objects, space), places=places)
    for stray in inputs.loaded.strays:
        report(stray, word="warning")
    for error in inputs.loaded.problems:
        report(error)
    if live is not None:
        unread = list(inputs.loaded.problems)
        if FROM_CLUSTER in flags.policies:
            live.add_policies(inputs.loaded)
        if FROM_CLUSTER in flags.exceptions:
            live.add_exceptions(inputs.loaded)
        for error in inputs.loaded.problems[len(unread) :]:
            report(error, word="warning")
        inputs.loaded.problems[:] = unread
        inputs = replace(inputs, setting=live.settled(inputs.setting))
    return inputs


def _as_apply(flags: CheckRequest) -> ApplyRequest:
    """Return what the files among the input are, as `apply` would be told."""
    return ApplyRequest(
        policies=tuple(one for one in flags.policies if one != FROM_CLUSTER),
        exceptions=tuple(one for one in flags.exceptions if one != FROM_CLUSTER),
        resources=flags.filename,
        values_file=flags.values_file,
        userinfo=flags.userinfo,
        set=flags.set,
        output=flags.output,
    )


def _placed(objects: Sequence[Object], namespace: str) -> list[Object]:
    """Return objects in the namespace that was asked for where the file itself left it open."""
    return [
        {**obj, "metadata": {**part(obj, "metadata"), "namespace": namespace}} if namespace_of(obj) == "default" else obj
        for obj in objects
    ]  # fmt: skip


def _judged(processor: Processor, obj: Object) -> list[Row]:
    results = [_result(row) for answer in processor.apply(obj) for row in rows_of(answer)]
    return rows_of_report({"scope": reference(obj), "results": results})


def _result(row: Result) -> Object:
    annotations = row.policy.annotations
    names = ",".join(key.rpartition("/")[2] for key in row.result.exceptions)
    return {
        "policy": row.policy.key,
        "rule": row.result.rule,
        "result": row.status,
        "message": row.result.message,
        "severity": vocabulary.severity_of(annotations),
        "category": str(annotations.get(vocabulary.CATEGORY) or ""),
        "properties": {**row.result.properties, **({"exceptions": names} if names else {})},
        "source": "kpolicy",
    }


def failures_of(flags: ClusterFlags, documents: Sequence[Object], policy: str, rules: Sequence[str]) -> list[dict[str, str]]:  # fmt: skip
    """Return what objects fail of a policy's rules in the cluster that kubectl's flags name; raises EngineError."""
    from engine.lang import wildcard

    from .documents import Loaded
    from .incluster import opened
    from .processor import Setting
    from .scope import Scopes

    loaded, scopes = Loaded(), Scopes()
    with opened(flags) as live:
        live.add_policies(loaded)
        live.add_exceptions(loaded)
        chosen = [one for one in loaded.policies if one.key == policy]
        processor = Processor(chosen, loaded.exceptions, setting=live.settled(Setting(now=cluster.now())))  # fmt: skip
        placed = _placed([scopes.placed(obj) for obj in documents], flags.namespace) if flags.namespace else map(scopes.placed, documents)  # fmt: skip
        rows = [row for obj in placed for row in _judged(processor, obj)]
    names = ("namespace", "resource", "policy", "rule")
    return [
        {name: row.text(name) for name in names}
        for row in rows
        if is_failure(row) and any(wildcard.match(rule, row.text("rule")) for rule in rules)
    ]


# Findings that are known and accepted for now: a list as `check -o json` and `violations -o json` print it.


Identity = tuple[str, str, str, str, str]
"""Policy, rule, and kind, namespace and name of the object."""


def read_baseline(name: str) -> set[Identity]:
    """Return the findings of a file; raises DocumentError for one that is no such list."""
    from engine.lang.yaml import load

    try:
        value = load(Path(name).read_bytes(), file=name)
    except OSError as error:
        raise DocumentError(f"cannot read `{name}`: {reason_of(error)}") from error
    items = value.get("items") if isinstance(value, dict) else None
    if not isinstance(items, list) or any(_is_no_finding(one) for one in items):
        raise DocumentError(
            "this is no list of findings",
            at=Location(name),
            help="make one with `kubectl kpolicy check -f FILE -o json`",
        )
    return {identity_of(one) for one in items}


def _is_no_finding(value: object) -> bool:
    return not isinstance(value, dict) or value.get("kind") != "Violation"


def identity_of(finding: Object) -> Identity:
    """Return what tells a finding from others; messages may change without its being another one."""
    resource = finding.get("resource") or {}
    return (
        str(finding.get("policy", "")),
        str(finding.get("rule", "")),
        str(resource.get("kind", "")),
        str(resource.get("namespace", "")),
        str(resource.get("name", "")),
    )
