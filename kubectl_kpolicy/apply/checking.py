"""The `check` command: what policies say about objects in files, as the rows of `violations`, and a verdict for pipelines."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from engine.record import replace
from kubectl_kpolicy.cluster.rows import severity_rank
from kubectl_kpolicy.cluster.violations import LISTING, is_failure, rows_of_report
from kubectl_kpolicy.output.diagnostics import report
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster
from kubectl_kpolicy.session.collector import collector_off

from .baseline import identity_of, read_baseline
from .inputs import load_inputs
from .names import metadata_of, namespace_of, reference
from .processor import Processor
from .rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from engine.model import Object
    from kubectl_kpolicy.cluster.rows import Row

    from .incluster import Live
    from .inputs import ApplyInputs
    from .rows import Row as Result

FROM_CLUSTER = "cluster"
REPORTS = ("sarif", "junit", "html")
_WITHOUT_TIME = ("age", "first", "source")


def run_command(args: argparse.Namespace) -> int:
    """Run `kubectl kpolicy check` and return its exit code; raises EngineError."""
    if not args.filename:
        raise Misuse("say which files to check", help="-f FILE, -f FOLDER or -f - for standard input")  # fmt: skip
    with collector_off(), _connection(args) as live:
        return _check(args, live)


def _connection(args: argparse.Namespace) -> AbstractContextManager[Live | None]:
    if FROM_CLUSTER not in (*args.policies, *args.exceptions):
        return nullcontext()
    from .incluster import opened

    return opened(args, registry=args.registry)


def _check(args: argparse.Namespace, live: Live | None) -> int:
    known = read_baseline(args.baseline) if args.baseline else set()
    inputs = _inputs(args, live)
    processor = _processor(args, inputs)
    for problem in processor.problems:
        report(problem.error)
    rows = [row for obj in inputs.objects for row in _judged(processor, obj)]
    new = [row for row in rows if identity_of(row.object) not in known]
    _show(args, rows if args.all else new)
    _tell(args, rows, new, known)
    least = severity_rank(args.fail_on) if args.fail_on else 0
    found = any(row.cells["result"] in ("fail", "error") and severity_rank(row.cells["severity"]) >= least for row in new)  # fmt: skip
    return int(found or bool(inputs.loaded.problems) or bool(processor.problems))


def _inputs(args: argparse.Namespace, live: Live | None) -> ApplyInputs:
    """Load what the flags name, the rules of the cluster among it; complain of what cannot be read."""
    inputs = load_inputs(_as_apply(args), _instant(args.as_of), strict=False)
    if args.namespace:
        inputs = replace(inputs, objects=_placed(inputs.objects, args.namespace))
    for error in inputs.loaded.problems:
        report(error)
    if live is not None:
        unread = list(inputs.loaded.problems)
        if FROM_CLUSTER in args.policies:
            live.add_policies(inputs.loaded)
        if FROM_CLUSTER in args.exceptions:
            live.add_exceptions(inputs.loaded)
        for error in inputs.loaded.problems[len(unread) :]:
            report(error, word="warning")
        inputs.loaded.problems[:] = unread
        inputs = replace(inputs, setting=live.settled(inputs.setting))
    return inputs


def _as_apply(args: argparse.Namespace) -> argparse.Namespace:
    """Return the flags as `apply` has them."""
    from kubectl_kpolicy.cli.apply import add_inputs

    parser = argparse.ArgumentParser(add_help=False)
    add_inputs(parser)
    made = parser.parse_args([])
    made.policies = [one for one in args.policies if one != FROM_CLUSTER]
    made.exceptions = [one for one in args.exceptions if one != FROM_CLUSTER]
    made.exceptions_within_policies = made.exceptions_with_resources = False
    made.resources = list(args.filename)
    made.values_file, made.userinfo, made.set = args.values_file, args.userinfo, args.set
    return made


def _instant(text: str) -> Any:
    from .explaining import instant_of

    return instant_of(text) if text else cluster.now()


def _placed(objects: Sequence[Object], namespace: str) -> list[Object]:
    """Return objects in the namespace that was asked for where the file itself left it open."""
    return [
        {**obj, "metadata": {**metadata_of(obj), "namespace": namespace}} if namespace_of(obj) == "default" else obj
        for obj in objects
    ]  # fmt: skip


def _processor(args: argparse.Namespace, inputs: ApplyInputs) -> Processor:
    from engine.lang import wildcard

    policies = [one for one in inputs.loaded.policies if wildcard.match(args.policy, one.key)]
    return Processor(policies, inputs.loaded.exceptions, bindings=inputs.loaded.bindings, setting=inputs.setting)  # fmt: skip


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
        "severity": str(annotations.get("policies.kyverno.io/severity") or ""),
        "category": str(annotations.get("policies.kyverno.io/category") or ""),
        "properties": {**row.result.properties, **({"exceptions": names} if names else {})},
        "source": "kpolicy",
    }


def _show(args: argparse.Namespace, rows: Sequence[Row]) -> None:
    """Print rows as `violations` does; raises Misuse."""
    from kubectl_kpolicy.cli.printing import print_rows
    from kubectl_kpolicy.cli.selection import selected

    columns = tuple(one for one in LISTING.columns if one.id not in _WITHOUT_TIME)
    listing, now = replace(LISTING, columns=columns, sort=("severity", "namespace", "resource")), cluster.now()  # fmt: skip
    chosen = selected(args, rows, listing, now, lambda row: args.all or is_failure(row))
    if args.output in REPORTS:
        from kubectl_kpolicy.output.reports import written

        sys.stdout.write(written(args.output, "violations", chosen, listing, now))
    elif chosen or args.output not in ("table", "wide"):
        print_rows(args, chosen, listing, now)


def _tell(args: argparse.Namespace, rows: Sequence[Row], new: Sequence[Row], known: set[Any]) -> None:  # fmt: skip
    """Say on standard error what the run came to."""
    if args.quiet:
        return
    failing = [row for row in rows if is_failure(row)]
    fresh = sum(map(is_failure, new))
    passed = sum(row.cells["result"] == "pass" for row in rows)
    text = f"{len(failing)} of {len(failing) + passed} results fail"
    if args.baseline:
        gone = len(known - {identity_of(row.object) for row in failing})
        text += f"; {len(failing) - fresh} are in the baseline, {fresh} are new, {gone} of the baseline are gone"  # fmt: skip
    print(text, file=sys.stderr)


def failures_of(args: argparse.Namespace, documents: Sequence[Object], policy: str, rules: Sequence[str]) -> list[dict[str, str]]:  # fmt: skip
    """Return what objects fail of a policy's rules in the cluster that kubectl's flags name; raises EngineError."""
    from engine.lang import wildcard

    from .documents import Loaded
    from .incluster import opened
    from .processor import Setting
    from .scope import Scopes

    loaded, scopes = Loaded(), Scopes()
    with opened(args) as live:
        live.add_policies(loaded)
        live.add_exceptions(loaded)
        chosen = [one for one in loaded.policies if one.key == policy]
        processor = Processor(chosen, loaded.exceptions, setting=live.settled(Setting(now=cluster.now())))  # fmt: skip
        placed = _placed([scopes.placed(obj) for obj in documents], args.namespace) if args.namespace else map(scopes.placed, documents)  # fmt: skip
        rows = [row for obj in placed for row in _judged(processor, obj)]
    names = ("namespace", "resource", "policy", "rule")
    return [
        {name: row.text(name) for name in names}
        for row in rows
        if is_failure(row) and any(wildcard.match(rule, row.text("rule")) for rule in rules)
    ]
