"""The `explain` command: the steps of every rule on the objects that were asked for."""

from __future__ import annotations

from contextlib import nullcontext
from copy import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from engine.errors import EngineError
from engine.lang import wildcard
from engine.record import replace
from kubectl_kpolicy.output.diagnostics import report, visible
from kubectl_kpolicy.output.explanation import lines, rules_explained
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session.collector import collector_off

from .inputs import load_inputs
from .names import name_of, resource_path
from .processor import Processor

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from engine.evaluate import Trace
    from engine.model import Object

    from .incluster import Live
    from .inputs import ApplyInputs
    from .processor import PolicyAnswer

_PIECE = 4_000


def run_command(args: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Run `kubectl kpolicy explain` and return its exit code; raises EngineError.

    Objects and policies that no files are named for are those of the cluster.
    """
    with collector_off(), _connection(args) as live:
        return _explain(args, live, out, err)


def _has_files(args: argparse.Namespace) -> bool:
    return bool(args.resources or args.stdin or args.json_payload or args.http_payload or args.envoy_payload)  # fmt: skip


def _connection(args: argparse.Namespace) -> AbstractContextManager[Live | None]:
    if args.policies and _has_files(args):
        return nullcontext()
    if not _has_files(args) and not args.names:
        raise Misuse("say which object to explain", help="write KIND/NAME for one of the cluster, or name files with -f")  # fmt: skip
    from .incluster import opened

    return opened(args)


def _explain(args: argparse.Namespace, live: Live | None, out: TextIO, err: TextIO) -> int:
    inputs = _inputs(args, live, err)
    policies = [
        policy for policy in inputs.loaded.policies if wildcard.match(args.policy, policy.key)
    ]
    processor = Processor(
        policies,
        inputs.loaded.exceptions,
        bindings=inputs.loaded.bindings,
        setting=inputs.setting,
        trace=True,
    )
    for problem in processor.problems:
        report(problem.error, err=err)
    chosen = [obj for obj in inputs.objects if _is_named(obj, args.names)]
    payloads = [one for one in inputs.payloads if _is_named(one.shown, args.names)]
    if not chosen and not payloads:
        raise EngineError(
            f"no resource is called {' or '.join(args.names)}", help="write KIND/NAME"
        )
    for obj in chosen:
        answers = processor.apply(obj)
        _show(args, obj, _wanted(processor, args.rule), answers, out)
    for payload in payloads:
        answers = processor.judge(payload)
        _show(args, payload.shown, _wanted(processor, "*"), answers, out)
    return 0


def _show(args: argparse.Namespace, obj: Object, traces: list[Trace], answers: list[PolicyAnswer], out: TextIO) -> None:  # fmt: skip
    told = explained(obj, traces, answers, whole=args.trace)
    print(*map(_harmless, told), sep="\n", file=out)


def explained(
    obj: Object, traces: Iterable[Trace], answers: Iterable[PolicyAnswer], *, whole: bool = False
) -> Iterator[str]:
    """Yield the lines that explain what every rule said about `obj`, and why; `whole` cuts no value."""
    yield resource_path(obj)
    results = (result for answer in answers for result in answer.results)
    yield from lines(rules_explained(traces, results), whole=whole)


def _harmless(line: str) -> str:
    """Return a line that cannot steer a terminal; long values were asked for whole, so that nothing is cut."""
    return "".join(visible(line[start : start + _PIECE]) for start in range(0, len(line), _PIECE))


def _inputs(args: argparse.Namespace, live: Live | None, err: TextIO) -> ApplyInputs:
    """Load what the flags name, and from the cluster what they leave open; complain of what cannot be read."""
    given = copy(args)
    given.cluster = not _has_files(args)
    inputs = load_inputs(given, instant_of(args.as_of), strict=args.validate == "strict")
    for error in inputs.loaded.problems:
        report(error, err=err)
    if live is None:
        return inputs
    inputs.loaded.problems.clear()
    if not args.policies:
        live.add_policies(inputs.loaded)
        live.add_exceptions(inputs.loaded)
    for error in inputs.loaded.problems:
        report(error, err=err, word="warning")
    objects = inputs.objects
    if not _has_files(args):
        objects = live.named(args.names, args.namespace)
        args.names = []
    return replace(inputs, objects=objects, setting=live.settled(inputs.setting))


def _wanted(processor: Processor, rule: str) -> list[Trace]:
    return [trace for trace in processor.traces if wildcard.match(rule, trace.rule)]


def instant_of(text: str) -> datetime:
    """Read an instant, now where none is given; raises Misuse."""
    if not text:
        return datetime.now(UTC)
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise Misuse(
            f"cannot read `{text}` as an instant", help="write it as 2026-11-21T10:18:00Z"
        ) from error
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)


def _is_named(obj: Object, names: list[str]) -> bool:
    own = f"{obj.get('kind', '')}/{name_of(obj)}".lower()
    return not names or any(own == wanted.lower() for wanted in names)
