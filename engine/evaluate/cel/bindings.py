"""The variables that expressions of policies read: made when first read, from one review and the answers at hand.

`object`, `oldObject` and `params` are there from the start; `request`, `namespaceObject`, `authorizer` and `variables` cost
something, so most evaluations never make them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from engine.errors import EvaluationError
from engine.evaluate.lookups import ObjectLookup
from engine.lang.cel import DEFAULT_BUDGET, CelEnv, CelError, Program
from engine.lang.cel.functions.authorizing import Authorizer

from .asking import answered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.evaluate.inputs import Inputs
    from engine.evaluate.state import Trace
    from engine.model import Json, Review

NAMES = frozenset(
    {"object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables"}
)
"""What Kubernetes lets the expressions of admission policies read."""

POLICY_NAMES = (NAMES - {"params", "authorizer"}) | {"exceptions"}
"""What those of Kyverno's policies read."""


class Bindings(dict[str, Any]):
    """Variables of one policy on one review, and the environment its expressions share.

    INVARIANT: nothing that it holds refers back to it but weakly. In a circle the whole review would stay in memory until the
    next collection, and the memory of every review would be fresh and slow.
    """

    __slots__ = ("__weakref__", "as_api_server", "env", "inputs", "review", "trace")

    def __init__(
        self,
        review: Review,
        inputs: Inputs,
        variables: Mapping[str, Program],
        *,
        params: Json = None,
        trace: Trace | None = None,
        as_api_server: bool = False,
    ) -> None:
        """Bind what a review holds.

        `as_api_server` has errors say the variable they come from, as the API server does, for which no object is without
        its namespace.
        """
        self["object"] = review.object
        self["oldObject"] = review.old_object
        self["params"] = params
        self.review = review
        self.inputs = inputs
        self.trace = trace
        self.as_api_server = as_api_server
        asking = partial(_asked, ref(self))
        self.env = CelEnv(inputs.now, DEFAULT_BUDGET, asking, inputs.seed)
        if variables:
            self["variables"] = Variables(variables, self)

    def __missing__(self, name: str) -> Any:
        make = _LATER.get(name)
        if make is None:
            raise KeyError(name)
        value = self[name] = make(self)
        return value

    def ask(self, question: Any) -> Any:
        """Answer what an expression asks of the world outside."""
        return answered(question, self.inputs, self.review)

    def value_of(self, program: Program) -> Any:
        """Evaluate a program; raises CelError."""
        return program(self, self.env)


def _asked(bindings: ref[Bindings], question: Any) -> Any:
    return _live(bindings).ask(question)


def _live(bindings: ref[Bindings]) -> Bindings:
    """Return the bindings, which whoever evaluates an expression holds."""
    found = bindings()
    assert found is not None
    return found


class Variables(dict[str, Any]):
    """`variables.NAME`: each expression is evaluated when it is first read; an error is kept as the value is."""

    __slots__ = ("_bindings", "_errors", "_programs", "_under_way")

    def __init__(self, programs: Mapping[str, Program], bindings: Bindings) -> None:
        self._programs = programs
        self._bindings = ref(bindings)
        self._errors: dict[str, EvaluationError] | None = None
        self._under_way: tuple[str, ...] = ()

    def __contains__(self, name: object) -> bool:
        return name in self._programs

    def __missing__(self, name: str) -> Any:
        program = self._programs.get(name)
        if program is None:
            raise KeyError(name)
        if self._errors is not None and name in self._errors:
            error = self._errors[name]
            raise error.reworded(error.message)
        if name in self._under_way:
            raise CelError(f"variable `{name}` depends on itself")
        bindings = _live(self._bindings)
        outer = self._under_way
        self._under_way = (*outer, name)
        try:
            value = self[name] = program(bindings, bindings.env)
        except EvaluationError as error:
            text = error.message
            if bindings.as_api_server:
                text = f'composited variable "{name}" fails to evaluate: {text}'
            # what is kept is never raised: its traceback would hold everything at hand, this included
            self._errors = {**(self._errors or {}), name: error.reworded(text)}
            raise error.reworded(text) from error
        finally:
            self._under_way = outer
        if (trace := bindings.trace) is not None:
            trace.add("variable", f"variables.{name}", None, value)
        return value


def request_of(bindings: Bindings) -> dict[str, Json]:
    """Return the AdmissionRequest without its objects; fields that are empty are left out, as the API server does."""
    review = bindings.review
    kind = {"group": review.group, "version": review.version, "kind": review.kind}
    resource = {"group": review.group, "version": review.version, "resource": review.resource}
    made: dict[str, Json] = {
        "uid": "",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "subResource": review.subresource,
        "requestSubResource": review.subresource,
        "name": review.name,
        "namespace": review.namespace,
        "operation": review.operation,
        "userInfo": review.user.info,
        "dryRun": review.dry_run,
        **review.request,
    }
    kept = {key: value for key, value in made.items() if value != "" or key in ("uid", "operation")}
    return {**kept, "object": review.object, "oldObject": review.old_object}


def namespace_of(bindings: Bindings) -> Json:
    """Return the Namespace that the object lives in, null for what lives in none.

    Where nobody knows the object it is null to Kyverno's policies (row CE-05), unless labels of the namespace are known:
    then, and always to policies as the API server asks them, it is its name and these.
    """
    review = bindings.review
    name = "" if review.kind == "Namespace" and not review.group else review.namespace
    if not name:
        return None
    answer = bindings.inputs.ask(ObjectLookup("v1", "Namespace", "", name))
    if answer.error:
        raise CelError(answer.error)
    if isinstance(answer.value, dict):
        return answer.value
    labels = {"labels": dict(review.namespace_labels)} if review.namespace_labels else {}
    if not labels and not bindings.as_api_server:
        return None
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **labels}}


_LATER: dict[str, Callable[[Bindings], Any]] = {
    "request": request_of,
    "namespaceObject": namespace_of,
    "authorizer": lambda _: Authorizer(),
    "variables": lambda bindings: Variables({}, bindings),
    "exceptions": lambda _: {"allowedImages": [], "allowedValues": []},
}
