"""The run without a server: for each policy, what it decides for which object and why, asked of the engine alone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from controllers.manifests import sample
from engine.errors import EngineError, Location
from engine.evaluate import Answer, Evaluation, Inputs, Lookup, PolicySet, evaluate
from engine.evaluate.asking import conclude, until_answered
from engine.lang.yaml import load_all
from engine.model import RuleResult, RuleType, Status, UserInfo, review_of
from engine.parse import parse_exception, parse_policy
from kubectl_kpolicy.output.structured import yaml_text

from .cluster import answer_from
from .folding import folded, show, told, typed
from .scenes import NOW, SCENES, Scene, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SEED = b"guided run"
_MARKS = {
    Status.PASS: "ok  ",
    Status.FAIL: "FAIL",
    Status.ERROR: "ERR ",
    Status.SKIP: "skip",
    Status.WARN: "warn",
}


def main() -> int:
    """Run all scenes; return 0, or 1 when a sample cannot be read."""
    try:
        for number, scene in enumerate(SCENES, 1):
            _print_scene(number, scene)
    except EngineError as error:
        print(f"error: {error.at}: {error.message}", file=sys.stderr)
        return 1
    print("Next: kubectl kpolicy apply POLICY -r RESOURCE --explain, on files of your own.")
    return 0


def _print_scene(number: int, scene: Scene) -> None:
    print(f"{number}. {scene.title}\n{told(scene.says, '   ')}\n")
    for step in scene.steps:
        print(told(step.says, "   * "))
        show(_lines(step))


def _documents(names: tuple[str, ...]) -> Iterator[tuple[dict[str, Any], Location]]:
    for name in names:
        path = sample(name)
        for document in load_all(path.read_text(), file=name):
            yield document.value, Location(name, document.line)


def _lines(step: Step) -> Iterator[str]:
    objects = [word for name in step.objects for word in ("-r", name)]
    yield from typed(["kubectl", "kpolicy", "apply", *step.policies, *objects])
    policies = [parse_policy(value, at=at) for value, at in _documents(step.policies)]
    exceptions = [parse_exception(value, at=at) for value, at in _documents(step.exceptions)]
    compiled = PolicySet.compile(policies, exceptions)
    cluster = [value for value, _ in _documents(step.cluster)]
    for obj, _ in _documents(step.objects):
        yield from _answers(compiled, _labelled(obj, step), cluster, step)


def _labelled(obj: dict[str, Any], step: Step) -> dict[str, Any]:
    if not step.labels:
        return obj
    metadata = obj["metadata"]
    labels = {**metadata.get("labels", {}), **dict(step.labels)}
    return {**obj, "metadata": {**metadata, "labels": labels}}


def _answers(
    compiled: PolicySet, obj: dict[str, Any], cluster: list[dict[str, Any]], step: Step
) -> Iterator[str]:
    metadata = obj["metadata"]
    place = "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)
    yield f"{obj['kind']} {place}"
    review = review_of(obj, user=UserInfo(username=step.user, groups=("developers",)))
    found = _evaluated(compiled, review, cluster)
    for result in found.results:
        yield from _result(result)
    for trace in found.traces:
        for text in trace.steps:
            if (
                text.kind == "match"
                and text.holds is False
                and not trace.rule.startswith("autogen-")
            ):
                yield from folded(
                    f"  -    {trace.policy}/{trace.rule}: {text.text}", further=" " * 7
                )
    if not found.results:
        yield "  no rule applies: admitted"


def _evaluated(compiled: PolicySet, review: Any, cluster: list[dict[str, Any]]) -> Evaluation:
    """Evaluate until every question has been answered from the imagined cluster."""

    def ask(answers: Mapping[Lookup, Answer]) -> Evaluation:
        return evaluate(compiled, review, Inputs(now=NOW, seed=SEED, answers=answers), trace=True)

    asking = until_answered(ask, {})
    return conclude(asking, lambda lookups: {one: answer_from(one, cluster) for one in lookups})


def _result(result: RuleResult) -> Iterator[str]:
    blocks = " (blocks)" if result.enforce and result.status is Status.FAIL else ""
    text = result.message or result.status.value
    said = f"  {_MARKS[result.status]} {result.policy}/{result.rule}{blocks}: {text}"
    yield from folded(said, further=" " * 7)
    if result.type is RuleType.MUTATION and result.status is Status.PASS:
        shown = result.targets[0].after if result.targets else result.patched
        yield from _shown("after it:", shown)
    for made in result.generated:
        yield from _shown("makes:", made)


def _shown(title: str, obj: Any) -> Iterator[str]:
    yield f"       {title}"
    for line in yaml_text(obj).splitlines():
        yield f"         {line}"
