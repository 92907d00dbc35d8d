"""The `apply` command: everything loaded, policies applied object by object, results shown, the exit code that follows."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

from engine.errors import EngineError, Location
from engine.lang import duration
from kubectl_kpolicy.output.diagnostics import report
from kubectl_kpolicy.output.structured import json_text
from kubectl_kpolicy.output.table import wanted

from .inputs import ApplyInputs, ApplyRequest, check_named, load_inputs, policies_named
from .names import reference, resource_path
from .narration import Differences, Narrator, changed_objects, header, invalid_policies
from .verdicts import Counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from engine.model import Object

    from .destination import Destination
    from .outside import Outside
    from .processor import PolicyAnswer, Processor
    from .rows import Row


def run_command(flags: ApplyRequest, out: TextIO, err: TextIO) -> int:
    """Run `kubectl kpolicy apply` and return its exit code."""
    with asking(flags) as outside:
        return _Session(flags, out, err, outside).run()


@contextmanager
def asking(flags: ApplyRequest) -> Iterator[Outside | None]:
    """Give what asks the cluster and the registries that the flags name, None where they name none; close it afterwards."""
    if not (flags.cluster or flags.registry):
        yield None
        return
    check_named(flags)
    from controllers.kube.access import load_access

    from .outside import Outside

    access = load_access(flags.kubeconfig or None, flags.context or None) if flags.cluster else None
    with closing(Outside(access, registry=flags.registry)) as outside:
        yield outside


_ELSEWHERE = ("csv", "html", "jsonl", "github", "text", "md", "xml")
"""Formats of other commands, which are names of folders here."""


class _Session:
    """One run of the command."""

    def __init__(
        self, flags: ApplyRequest, out: TextIO, err: TextIO, outside: Outside | None
    ) -> None:
        self._flags = flags
        self._outside = outside
        self._out, self._err = out, err
        self._now = datetime.now(UTC)
        self._format, path = _output(flags)
        self._destination = _destination(path, err) if path else None
        self._documents = flags.policy_report or flags.generate_exceptions
        self._keeps_rows = bool(self._format) or self._documents
        self._counts = Counts(audit_warn=flags.audit_warn)
        self._rows: list[Row] = []
        self._changed: list[tuple[str, Object]] = []
        self._places: Mapping[str, Location] = {}

    def run(self) -> int:
        flags = self._flags
        strict = flags.validate == "strict"
        inputs = load_inputs(flags, self._now, strict=strict, outside=self._outside)
        self._places = inputs.places
        processor = inputs.processor(
            inputs.loaded.policies, trace=flags.explain, kinds=_kinds_of(inputs)
        )
        refused = self._problems(inputs, processor)
        narrator = self._narrator(inputs, processor)
        judged = chain(
            ((obj, processor.apply(obj), processor.mutating) for obj in inputs.objects),
            ((one.shown, processor.judge(one), ()) for one in inputs.payloads),
        )
        for obj, answers, mutating in judged:
            self._take(answers, narrator)
            if self._destination is not None:
                self._destination.add(obj, answers, mutating)
            self._explain(obj, processor, answers)
        self._clean_up(inputs)
        if narrator is not None:
            self._out.write(invalid_policies(refused))
            narrator.finish(self._counts)
        else:
            self._show()
        code = self._counts.exit_code(
            fail_on=flags.fail_on, warn_code=flags.warn_exit_code, warn_no_pass=flags.warn_no_pass
        )
        is_partial = bool(refused or inputs.loaded.unsupported)
        return code or int(is_partial and not flags.continue_on_error)

    def _explain(self, obj: Object, processor: Processor, answers: Sequence[PolicyAnswer]) -> None:
        if self._flags.explain:
            from .explaining import explained  # here: few runs explain

            stream = self._err if self._keeps_rows else self._out
            print(*explained(obj, processor.traces, answers), sep="\n", file=stream)

    def _problems(self, inputs: ApplyInputs, processor: Processor) -> list[str]:
        """Complain of policies that are left out; returns their names."""
        loaded = inputs.loaded
        text = "is left out: this version does not evaluate its kind"
        later = [
            EngineError(f"{one.kind} `{one.name}` {text}", at=one.at) for one in loaded.unsupported
        ]
        doubts = loaded.doubts if self._flags.validate == "warn" else ()
        for doubt in (*later, *loaded.strays, *doubts):
            report(doubt, err=self._err, word="warning")
        for error in (*loaded.problems, *(problem.error for problem in processor.problems)):
            report(error, err=self._err)
        if not (loaded.problems or loaded.unsupported or loaded.cleanups):
            policies_named(loaded, "*", self._err)
        if not (inputs.objects or inputs.payloads or self._flags.cluster):
            report(EngineError("there are no objects to judge"), err=self._err, word="warning")
        return [
            *(str(error.at) or error.message for error in loaded.problems),
            *(problem.policy.key for problem in processor.problems),
        ]

    def _narrator(self, inputs: ApplyInputs, processor: Processor) -> Narrator | None:
        if self._keeps_rows:
            return None
        flags = self._flags
        if not flags.stdin:
            counted = (
                processor.rule_count,
                len(inputs.objects) + len(inputs.payloads),
                len(inputs.loaded.exceptions),
            )
            self._out.write(header(*counted))
        return Narrator(
            self._out,
            audit_warn=flags.audit_warn,
            bare=flags.stdin,
            quiet_changes=self._destination is not None,
            differences=Differences() if flags.diff else None,
        )

    def _take(self, answers: Sequence[PolicyAnswer], narrator: Narrator | None) -> None:
        for answer in answers:
            self._counts.add(answer)
        if narrator is not None:
            narrator.add(answers)
        if self._keeps_rows:
            from .rows import rows_of

            for answer in answers:
                self._rows += rows_of(answer, audit_warn=self._flags.audit_warn)
                self._changed += changed_objects(answer)

    def _clean_up(self, inputs: ApplyInputs) -> None:
        """Say what clean-up policies would delete now."""
        if not inputs.loaded.cleanups:
            return

        stream = self._err if self._keeps_rows else self._out
        for line in deletions(inputs):
            print(line, file=stream)

    def _show(self) -> None:
        flags = self._flags
        if flags.policy_report:
            self._show_documents(reports_of(self._rows, self._now))
        elif flags.generate_exceptions:
            lifetime = duration.parse(flags.generated_exception_ttl)
            if lifetime is None:
                raise EngineError(f"cannot read `{flags.generated_exception_ttl}` as a duration")
            from .destination import exceptions_for

            self._show_documents(exceptions_for(self._rows, duration.text(lifetime)))
        else:
            self._show_format()

    def _show_documents(self, documents: list[dict[str, Any]]) -> None:
        if self._flags.output_format == "json":
            self._out.writelines(map(json_text, documents))
        else:
            from engine.lang.yaml.write import GO, write_all

            self._out.write(write_all(documents, GO, sort=True))

    def _show_format(self) -> None:
        from . import rows as formats
        from .boxes import Brush

        flags = self._flags
        outcome = formats.Outcome(self._rows, self._counts, self._changed, self._places)
        if self._format == "table":
            brush = Brush(on=not flags.remove_color and wanted(flags.color, self._out))
            self._out.write(formats.as_table(outcome, brush, detailed=flags.detailed_results))
            self._out.write(f"\n{self._counts.line()}\n")
        else:
            self._out.write(formats.FORMATS[self._format](outcome))
            if not flags.quiet:
                print(self._counts.line().rstrip(), file=self._err)


def _kinds_of(inputs: ApplyInputs) -> frozenset[str]:
    """Return the kinds that policies are asked about: those of the objects, and of what they are parts of."""
    parents = (parent.kind for parent in inputs.setting.values.parents.values())
    return frozenset((*(str(one.get("kind")) for one in inputs.objects), *parents))


def _output(flags: ApplyRequest) -> tuple[str, str]:
    """Return the format and the path that `-o` means: a format's name, or where to write changed objects."""
    if flags.output:
        from .rows import FORMATS  # here, as all that shows rows: most runs narrate

        if flags.output in FORMATS:
            return flags.output, ""
    return "table" if flags.table else "", flags.output


def _destination(path: str, err: TextIO) -> Destination:
    """Return where changed objects are written; a path that is named like a format of other commands is warned of."""
    from .destination import Destination

    if path in _ELSEWHERE:
        from .rows import FORMATS

        report(EngineError(f"`-o {path}` writes changed objects below `{path}`", help=f"as a format there are {', '.join(FORMATS)}"), err=err, word="warning")  # fmt: skip
    return Destination(path)


# `apply -p`: results as a report object, as Kyverno's CLI prints it (rows K-03, R-02, CC-16).
#
# Results of cluster-wide policies stand in one ClusterReport called `merged`, those of a namespaced policy in a PolicyReport of
# its own in that namespace. Their fields are those of the reports in a cluster.

_API = "openreports.io/v1alpha1"


def reports_of(rows: Iterable[Row], now: datetime) -> list[dict[str, Any]]:
    """Return the reports of a run, the cluster-wide one first; none where there are no results."""
    clustered: list[Row] = []
    namespaced: dict[str, list[Row]] = {}
    for row in rows:
        if row.policy.namespace:
            namespaced.setdefault(row.policy.key, []).append(row)
        else:
            clustered.append(row)
    reports = [_report("ClusterReport", {"name": "merged"}, clustered, now)] if clustered else []
    for below in namespaced.values():
        policy = below[0].policy
        place = {"name": policy.name, "namespace": policy.namespace}
        reports.append(_report("PolicyReport", place, below, now))
    return reports


def _report(
    kind: str, metadata: dict[str, str], rows: Sequence[Row], now: datetime
) -> dict[str, Any]:
    from controllers.store.reports import summary

    results = [_result(row, now) for row in rows]
    return {
        "apiVersion": _API,
        "kind": kind,
        "metadata": metadata,
        "results": results,
        "source": "kyverno",
        "summary": summary(results),
    }


def _result(row: Row, now: datetime) -> dict[str, Any]:
    """Return the row of a cluster's report, with the object and the status that the flags make of it."""
    from controllers.store.reports import row_of

    made = row_of(row.result, row.policy, now)
    return {
        **made,
        "message": row.result.message,
        "resources": [reference(row.object)],
        "result": row.status,
        "scored": made["scored"] and row.status != "warn",
    }


def deletions(inputs: ApplyInputs) -> Iterator[str]:
    """Yield a line for every object that a clean-up policy matches, and one for the policy's next run."""
    from engine.cleanup.plan import compile_cleanup, plan
    from engine.evaluate import Inputs
    from engine.evaluate.asking import conclude
    from engine.lang import rfc3339

    setting = inputs.setting
    given = Inputs(now=setting.now, seed=setting.seed, resolve_values=setting.resolve_values)
    labels = {**setting.namespace_labels, **setting.values.namespace_labels}
    for policy in inputs.loaded.cleanups:
        try:
            asking = plan(compile_cleanup(policy), inputs.objects, given, namespace_labels=labels)
            found = conclude(asking, setting.world.answers)
        except EngineError as error:
            yield f"cleanup policy {policy.key}: {error.message}"
            continue
        when = rfc3339.write(found.run_at) if found.run_at else "never"
        yield f"cleanup policy {policy.key} would delete {len(found.deletions)} resource(s), next run {when}:"
        for decision in found.decisions:
            verb = "delete" if decision.goes else "keep"
            yield f"  {verb} {resource_path(decision.object)}: {decision.reason}"
