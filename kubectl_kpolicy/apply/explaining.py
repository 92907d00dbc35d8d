"""The `explain` command: the steps of every rule on the objects that were asked for."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TextIO

from engine.collector import collector_off
from engine.errors import EngineError
from engine.lang import wildcard
from engine.record import record, replace
from kubectl_kpolicy.output.diagnostics import report, visible
from kubectl_kpolicy.output.explanation import lines, rules_explained
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster

from .inputs import ApplyInputs, ApplyRequest, check_named, load_inputs, policies_named
from .names import name_of, resource_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from engine.evaluate import Trace
    from engine.model import Object
    from kubectl_kpolicy.session.cluster import ClusterFlags

    from .incluster import Live
    from .processor import PolicyAnswer, Processor

_PIECE = 4_000


@record
class ExplainRequest:
    """What `explain` was told: which objects of which input, and which rules."""

    connection: ClusterFlags
    inputs: ApplyRequest
    names: tuple[str, ...] = ()
    policy: str = "*"
    rule: str = "*"
    as_of: str = ""
    trace: bool = False


def run_command(flags: ExplainRequest, out: TextIO, err: TextIO) -> int:
    """Run `kubectl kpolicy explain` and return its exit code; raises EngineError.

    Objects and policies that no files are named for are those of the cluster.
    """
    with collector_off(), _connection(flags) as live:
        return _explain(flags, live, out, err)


def _connection(flags: ExplainRequest) -> AbstractContextManager[Live | None]:
    if flags.inputs.policies and flags.inputs.has_files:
        return nullcontext()
    if not flags.inputs.has_files and not flags.names:
        raise Misuse("say which object to explain", help="write KIND/NAME for one of the cluster, or name files with -f")  # fmt: skip
    from .incluster import opened

    check_named(flags.inputs)
    cluster.instant_of(flags.as_of)
    return opened(flags.connection)


def _explain(flags: ExplainRequest, live: Live | None, out: TextIO, err: TextIO) -> int:
    inputs = _inputs(flags, live, err)
    processor = inputs.processor(policies_named(inputs.loaded, flags.policy, err), trace=True)
    for problem in processor.problems:
        report(problem.error, err=err)
    chosen = inputs.objects
    if flags.inputs.has_files:
        chosen = [obj for obj in chosen if _is_named(obj, flags.names)]
    payloads = [one for one in inputs.payloads if _is_named(one.shown, flags.names)]
    if not chosen and not payloads:
        if not flags.names:
            raise EngineError("there are no objects in the files")
        raise EngineError(
            f"no resource is called {' or '.join(flags.names)}", help="write KIND/NAME"
        )
    for obj in chosen:
        answers = processor.apply(obj)
        _show(flags, obj, _wanted(processor, flags.rule), answers, out)
    for payload in payloads:
        answers = processor.judge(payload)
        _show(flags, payload.shown, _wanted(processor, "*"), answers, out)
    return 0


def _show(flags: ExplainRequest, obj: Object, traces: list[Trace], answers: list[PolicyAnswer], out: TextIO) -> None:  # fmt: skip
    told = explained(obj, traces, answers, whole=flags.trace)
    print(*map(_harmless, told), sep="\n", file=out)


def explained(
    obj: Object, traces: Iterable[Trace], answers: Iterable[PolicyAnswer], *, whole: bool = False
) -> Iterator[str]:
    """Yield the lines that explain what every rule said about `obj`, and why; `whole` cuts no value."""
    yield resource_path(obj)
    results = (result for answer in answers for result in answer.results)
    yield from lines(rules_explained(obj, traces, results), whole=whole)


def _harmless(line: str) -> str:
    """Return a line that cannot steer a terminal; long values were asked for whole, so that nothing is cut."""
    return "".join(visible(line[start : start + _PIECE]) for start in range(0, len(line), _PIECE))


def _inputs(flags: ExplainRequest, live: Live | None, err: TextIO) -> ApplyInputs:
    """Load what the flags name, and from the cluster what they leave open; complain of what cannot be read."""
    given = replace(flags.inputs, cluster=not flags.inputs.has_files)
    inputs = load_inputs(given, cluster.instant_of(flags.as_of), strict=given.validate == "strict")
    for error in inputs.loaded.problems:
        report(error, err=err)
    if live is None:
        return inputs
    inputs.loaded.problems.clear()
    if not given.policies:
        live.add_policies(inputs.loaded)
        live.add_exceptions(inputs.loaded)
    for error in inputs.loaded.problems:
        report(error, err=err, word="warning")
    objects = inputs.objects
    if given.cluster:
        objects = live.named(flags.names, flags.connection.namespace)
    return replace(inputs, objects=objects, setting=live.settled(inputs.setting))


def _wanted(processor: Processor, rule: str) -> list[Trace]:
    return [trace for trace in processor.traces if wildcard.match(rule, trace.rule)]


def _is_named(obj: Object, names: Sequence[str]) -> bool:
    own = f"{obj.get('kind', '')}/{name_of(obj)}".lower()
    return not names or any(own == wanted.lower() for wanted in names)
