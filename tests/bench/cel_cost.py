"""What CEL costs: 16 policies against `orjson.loads` of the same review, one expression against Google's implementation.

The other implementation converts an object each time it sees a new one, and every review is new; both ways are shown.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from engine.errors import Location
from engine.evaluate import Inputs, PolicySet, evaluate
from engine.lang import cel
from engine.lang.cel import program
from engine.lang.yaml import load_all
from engine.parse.celpolicies import parse_cel_policy

from . import subjects
from .engine_cost import review_of_bytes, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POLICIES = Path(__file__).with_name("pod_security_cel.yaml")
ONE = "object.spec.containers.all(c, has(c.securityContext) && c.securityContext.allowPrivilegeEscalation == false)"
WHOLE = "16 Pod Security policies in CEL, review decoded"
OURS, THEIRS = "one expression", "one expression, cel-expr-python, new object"


@dataclass(frozen=True)
class Cost:
    """Median seconds by name, and KiB that the compiled expressions hold, each on average."""

    seconds: dict[str, float]
    memory: float


def expressions() -> Iterator[str]:
    """Yield the expressions of all policies: variables and validations."""
    for document in load_all(POLICIES.read_text()):
        spec = document.value["spec"]
        yield from (part["expression"] for part in spec.get("variables", ()))
        yield from (part["expression"] for part in spec["validations"])


def measure() -> Cost:
    """Return what evaluating, compiling and holding cost, all in one run."""
    body = subjects.review_bytes()
    policies = PolicySet.compile(
        parse_cel_policy(document.value, at=Location(POLICIES.name))
        for document in load_all(POLICIES.read_text())
    )
    assert not policies.problems
    ready = review_of_bytes(body)
    results = evaluate(policies, ready, Inputs()).results
    assert len(results) == 16
    assert {result.status.value for result in results} == {"pass"}
    bindings = {"object": ready.object}
    one = cel.compile(ONE)
    assert one(bindings) is True
    texts = list(expressions())
    works: dict[str, Callable[[], Any]] = {
        "orjson.loads of the review": lambda: orjson.loads(body),
        WHOLE: lambda: evaluate(policies, ready, Inputs()),
        OURS: lambda: one(bindings),
        "one expression, compiled": lambda: _compiled([ONE]),
        f"{len(texts)} expressions, compiled": lambda: _compiled(texts),
    }
    return Cost(timed({**works, **_others(bindings)}), _memory(texts))


def _compiled(texts: list[str]) -> list[cel.Program]:
    program._compiled.cache_clear()
    return [cel.compile(text) for text in texts]


def _others(bindings: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Return the same work by the other implementation, where there is one for this system."""
    try:
        from cel_expr_python import cel as other
    except ImportError:
        return {}
    environment = other.NewEnv(variables={"object": other.Type.DYN})
    compiled = environment.compile(ONE)
    ready = environment.Activation(bindings)
    assert compiled.eval(ready).plain_value() is True
    return {
        THEIRS: lambda: compiled.eval(data=bindings),
        "one expression, cel-expr-python, same object": lambda: compiled.eval(ready),
        "one expression, cel-expr-python, compiled": lambda: environment.compile(ONE),
    }


def _memory(texts: list[str]) -> float:
    _compiled(texts)
    program._compiled.cache_clear()
    tracemalloc.start()
    held = _compiled(texts)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / len(held) / 1024
