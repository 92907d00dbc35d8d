"""What an evaluation costs, against `orjson.loads` of the same review in the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from engine.errors import Location
from engine.evaluate import Inputs, PolicySet, evaluate
from engine.lang.yaml import load_all
from engine.model import Policy, Review, UserInfo
from engine.parse import parse_policy
from engine.parse.celpolicies import parse_cel_policy

from . import subjects

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 21
ROUND_SECONDS = 0.03

Work = Callable[[], Any]


def timed(works: dict[str, Work]) -> dict[str, float]:
    """Return the median seconds of each piece of work; rounds take turns, so a slow moment hits all alike."""
    counts = {name: _repeats(work) for name, work in works.items()}
    samples: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            samples[name].append(_once(work, counts[name]))
    return {name: statistics.median(values) for name, values in samples.items()}


def _repeats(work: Work) -> int:
    work()
    return max(1, int(ROUND_SECONDS / max(_once(work, 3), 1e-7)))


def _once(work: Work, count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - began) / count


def policies_in(files: list[Path]) -> list[Policy]:
    """Return the policies of sample files."""
    return [
        parse_policy(document.value, at=Location(str(path)))
        for path in files
        for document in load_all(path.read_text())
    ]


def policies_in_cel() -> list[Policy]:
    """Return the Pod Security Standards written in CEL: 16 policies with 22 expressions."""
    found = [
        parse_cel_policy(document.value, at=Location(document.file, document.line))
        for document in load_all(subjects.STANDARDS_IN_CEL.read_text())
    ]
    assert sum(len(policy.raw["spec"]["validations"]) for policy in found) == 22
    return found


def review_of_bytes(body: bytes) -> Review:
    """Return the review in an AdmissionReview body, as a webhook makes it."""
    request = orjson.loads(body)["request"]
    kind, user = request["kind"], request["userInfo"]
    return Review(
        object=request["object"],
        old_object=request["oldObject"],
        operation=request["operation"],
        group=kind["group"],
        version=kind["version"],
        kind=kind["kind"],
        user=UserInfo(username=user["username"], groups=tuple(user["groups"])),
        request=request,
    )


def measure() -> dict[str, float]:
    """Return median seconds by name; `orjson.loads` is the yardstick."""
    body = subjects.review_bytes()
    many = PolicySet.compile(policies_in(subjects.STANDARDS))
    one = PolicySet.compile(policies_in(subjects.STANDARDS[1:2]))
    in_cel = PolicySet.compile(policies_in_cel())
    assert not many.problems + in_cel.problems
    ready = review_of_bytes(body)
    results = evaluate(many, ready, Inputs()).results
    assert len(results) == len(subjects.STANDARDS)
    assert {result.status.value for result in results} == {"pass"}
    assert [str(result.status) for result in evaluate(in_cel, ready, Inputs()).results] == [
        "pass"
    ] * 16
    parsed = policies_in(subjects.STANDARDS)
    return timed(
        {
            "orjson.loads of the review": lambda: orjson.loads(body),
            "16 Pod Security policies, bytes to results": lambda: evaluate(
                many, review_of_bytes(body), Inputs()
            ),
            "16 Pod Security policies, review decoded": lambda: evaluate(many, ready, Inputs()),
            "16 Pod Security policies in CEL, review decoded": lambda: evaluate(
                in_cel, ready, Inputs()
            ),
            "one simple rule, review decoded": lambda: evaluate(one, ready, Inputs()),
            "compile one policy (with autogen), mean of 16": lambda: PolicySet.compile(parsed),
        }
    )
