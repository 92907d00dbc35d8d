"""What expressions ask of the outside world, and what they make of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import EvaluationError
from engine.lang import cel
from engine.lang.cel.functions.authorizing import Authorizer, Check
from engine.lang.cel.lookups import AccessCheck


def asked(expression: str, bindings: dict[str, Any] | None = None) -> tuple[Any, list[Any]]:
    """Return the value of an expression and the questions it asked; access to `allowed` is allowed."""
    questions: list[Any] = []

    def answer(lookup: Any) -> Any:
        questions.append(lookup)
        is_allowed = lookup.name == "allowed" or lookup.path == "/allowed"
        return {"allowed": is_allowed, "reason": "rbac", "error": "" if is_allowed else "no"}

    known = {"authorizer": Authorizer(), **(bindings or {})}
    return cel.compile(expression)(known, cel.CelEnv(ask=answer)), questions


@pytest.mark.parametrize(
    ("expression", "question"),
    [
        ('path("/healthz").check("get")', AccessCheck("get", path="/healthz")),
        (
            'group("apps").resource("deployments").check("create")',
            AccessCheck("create", group="apps", resource="deployments"),
        ),
        (
            'group("").resource("pods").subresource("log").namespace("n").name("p").check("get")',
            AccessCheck("get", resource="pods", subresource="log", namespace="n", name="p"),
        ),
        (
            'group("").resource("pods").fieldSelector("a=b").labelSelector("c=d").check("list")',
            AccessCheck("list", resource="pods", field_selector="a=b", label_selector="c=d"),
        ),
        (
            'serviceAccount("ns", "sa").group("").resource("pods").check("get")',
            AccessCheck("get", resource="pods", service_account="ns/sa"),
        ),
        (
            'serviceAccount("ns", "sa").path("/x").check("get")',
            AccessCheck("get", path="/x", service_account="ns/sa"),
        ),
    ],
)
def test_an_access_check_is_built_step_by_step(expression: str, question: AccessCheck) -> None:
    assert asked(f"authorizer.{expression}.allowed()") == (False, [question])


@pytest.mark.parametrize(
    ("method", "allowed", "refused"),
    [("allowed", True, False), ("reason", "rbac", "rbac"), ("errored", False, True), ("error", "", "no")],
)  # fmt: skip
def test_a_decision_has_four_parts(method: str, allowed: Any, refused: Any) -> None:
    check = 'authorizer.group("").resource("pods").name("{}").check("get").{}()'

    assert asked(check.format("allowed", method))[0] == allowed
    assert asked(check.format("other", method))[0] == refused


def test_the_check_of_the_request_is_a_binding_with_a_dotted_name() -> None:
    program = cel.compile(
        'authorizer.requestResource.check("update").allowed()',
        qualified=["authorizer.requestResource"],
    )
    questions: list[Any] = []

    def answer(lookup: Any) -> Any:
        questions.append(lookup)
        return {"allowed": True}

    bound = {
        "authorizer": Authorizer(),
        "authorizer.requestResource": Check(
            AccessCheck("", resource="pods", namespace="n", name="p")
        ),
    }

    assert program(bound, cel.CelEnv(ask=answer)) is True
    assert questions == [AccessCheck("update", resource="pods", namespace="n", name="p")]


@pytest.mark.parametrize("answer", [{}, {"allowed": "true"}, {"allowed": 1}, {"allowed": None}])
def test_only_the_answer_true_allows(answer: dict[str, Any]) -> None:
    check = cel.compile('authorizer.path("/x").check("get").allowed()')

    assert check({"authorizer": Authorizer()}, cel.CelEnv(ask=lambda _: answer)) is False


def test_a_step_that_was_not_taken_changes_nothing_in_others() -> None:
    shared = 'cel.bind(c, authorizer.group("").resource("pods"), [c.name("a"), c].map(x, x.check("get").allowed()))'

    assert [question.name for question in asked(shared)[1]] == ["a", ""]


def test_nothing_is_asked_for_a_branch_that_is_not_taken() -> None:
    assert asked('false && authorizer.path("/x").check("get").allowed()') == (False, [])
    assert asked('false ? resource.Get("v1", "pods", "n", "p") : 1') == (1, [])


def test_a_bound_lookup_is_asked_once_and_only_when_read() -> None:
    bound = 'cel.bind(c, authorizer.path("/x").check("get"), {})'

    assert len(asked(bound.format("c.allowed() || c.reason() == 'x' || c.errored()"))[1]) == 1
    assert asked(bound.format("1"))[1] == []


def test_without_anybody_to_ask_a_lookup_is_an_error_that_can_be_absorbed() -> None:
    expression = 'resource.Get("v1", "pods", "n", "p").x == 1'

    with pytest.raises(cel.CelError, match="GetResource cannot be answered here"):
        cel.compile(expression)({})
    assert cel.compile(f"{expression} || true")({}) is True


def test_a_refusal_of_whoever_answers_is_an_error_of_the_expression() -> None:
    def refuse(_: Any) -> Any:
        raise EvaluationError("pods `p` not found")

    with pytest.raises(cel.CelError, match="pods `p` not found") as caught:
        cel.compile('1 == 2 || resource.Get("v1", "pods", "n", "p").x')({}, cel.CelEnv(ask=refuse))
    assert caught.value.position >= 0


def test_what_is_no_refusal_passes_through_unabsorbed() -> None:
    class UnansweredError(Exception):
        pass

    def later(_: Any) -> Any:
        raise UnansweredError

    with pytest.raises(UnansweredError):
        cel.compile('http.Get("x") == 1 || true')({}, cel.CelEnv(ask=later))
