"""The `explain` command: the steps of every rule on the objects that were asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from engine.errors import EngineError
from engine.lang import wildcard
from kubectl_kpolicy.output.diagnostics import report
from kubectl_kpolicy.session.collector import collector_off

from .inputs import load_inputs
from .names import name_of
from .processor import Processor
from .traces import explained

if TYPE_CHECKING:
    import argparse

    from engine.evaluate import Trace
    from engine.model import Object


def run_command(args: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Run `kubectl kpolicy explain` and return its exit code."""
    with collector_off():
        return _explain(args, out, err)


def _explain(args: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    inputs = load_inputs(args, _instant(args.as_of), strict=args.validate == "strict")
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
    for error in inputs.loaded.problems:
        report(error, err=err)
    chosen = [obj for obj in inputs.objects if _is_named(obj, args.names)]
    payloads = [one for one in inputs.payloads if _is_named(one.shown, args.names)]
    if not chosen and not payloads:
        raise EngineError(
            f"no resource is called {' or '.join(args.names)}", help="write KIND/NAME"
        )
    for obj in chosen:
        answers = processor.apply(obj)
        print(*explained(obj, _wanted(processor, args.rule), answers), sep="\n", file=out)
    for payload in payloads:
        answers = processor.judge(payload)
        print(*explained(payload.shown, _wanted(processor, "*"), answers), sep="\n", file=out)
    return 0


def _wanted(processor: Processor, rule: str) -> list[Trace]:
    return [trace for trace in processor.traces if wildcard.match(rule, trace.rule)]


def _instant(text: str) -> datetime:
    if not text:
        return datetime.now(UTC)
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise EngineError(
            f"cannot read `{text}` as an instant", help="write it as 2026-11-21T10:18:00Z"
        ) from error
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)


def _is_named(obj: Object, names: list[str]) -> bool:
    own = f"{obj.get('kind', '')}/{name_of(obj)}".lower()
    return not names or any(own == wanted.lower() for wanted in names)
