"""Policies that judge HTTP and Envoy requests: who decides, what is told, and which tokens count."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any

import pytest

from engine.evaluate import Inputs, PolicySet, evaluate
from engine.model import Review
from tests.engine.celpolicies.documents import config_map, statuses, validating

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SECRET = "a secret of the tests"


def _judge(*expressions: str, mode: str = "HTTP", value: Any = None, payload: str = "") -> Any:
    validations = [{"expression": text} for text in expressions]
    policy = validating(validations=validations, evaluation={"mode": mode})
    compiled = PolicySet.compile([policy])
    assert not compiled.problems
    review = Review(object=value or {}, operation="", payload=payload or mode)
    found = evaluate(compiled, review, Inputs(now=NOW)).results
    return [(str(result.status), result.message) for result in found]


def test_the_first_expression_that_has_a_say_decides() -> None:
    allows, denies = "http.Allowed().Response()", "http.Denied('no').Response()"

    assert _judge("null", allows, denies) == [("pass", "success")]
    assert _judge("null", denies, allows) == [("fail", "no")]


def test_without_a_say_the_policy_has_none() -> None:
    assert _judge("null") == []


def test_what_is_no_response_and_what_cannot_be_evaluated_are_errors() -> None:
    assert _judge("true")[0][0] == "error"
    assert _judge("http.Denied('no')")[0][0] == "error"
    assert _judge("object.x.y", "http.Allowed().Response()")[0][0] == "error"


def test_an_envoy_response_has_a_status_a_body_and_headers() -> None:
    plain = "envoy.Denied(401).Response()"
    full = "envoy.Denied(403).WithHeader('a', 'b').WithBody('go away').Response()"

    assert _judge(plain, mode="Envoy") == [("fail", "denied with status 401")]
    assert _judge(full, mode="Envoy") == [("fail", "go away")]
    assert _judge("envoy.Allowed().Response()", mode="Envoy") == [("pass", "success")]


def test_requests_of_another_mode_and_objects_are_not_judged() -> None:
    allows = "http.Allowed().Response()"

    assert _judge(allows, payload="Envoy") == []
    assert statuses(validating(allows, evaluation={"mode": "HTTP"}), config_map()) == []


def _part(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _token(claims: Any, secret: str = SECRET, algorithm: str = "HS256") -> str:
    signed = f"{_part({'alg': algorithm})}.{_part(claims)}"
    made = hmac.new(secret.encode(), signed.encode(), algorithm.replace("HS", "sha")).digest()
    return f"{signed}.{urlsafe_b64encode(made).decode().rstrip('=')}"


def _is_valid(token: str) -> bool | None:
    """Return whether a token counts as valid, None where it cannot be checked."""
    text = f"jwt.Decode(object.token, '{SECRET}').Valid ? http.Allowed().Response() : null"
    found = _judge(text, value={"token": token})
    return None if found and found[0][0] == "error" else bool(found)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_token_signed_with_the_secret_is_valid(algorithm: str) -> None:
    assert _is_valid(_token({"role": "admin"}, algorithm=algorithm)) is True


def test_a_token_signed_with_another_secret_is_not() -> None:
    assert _is_valid(_token({}, secret="other")) is False


def test_a_token_whose_claims_were_exchanged_is_not() -> None:
    header, _, signature = _token({"role": "guest"}).split(".")

    assert _is_valid(f"{header}.{_part({'role': 'admin'})}.{signature}") is False


@pytest.mark.parametrize("algorithm", ["none", "RS256", ""])
def test_a_token_cannot_choose_to_go_unsigned(algorithm: str) -> None:
    assert _is_valid(f"{_part({'alg': algorithm})}.{_part({})}.") is None


@pytest.mark.parametrize(
    ("claims", "valid"),
    [
        ({"exp": NOW.timestamp() + 1}, True),
        ({"exp": NOW.timestamp()}, False),
        ({"exp": "later"}, False),
        ({"exp": True}, False),
        ({"nbf": NOW.timestamp()}, True),
        ({"nbf": NOW.timestamp() + 1}, False),
    ],
)
def test_a_token_counts_from_its_beginning_until_its_end(claims: Any, valid: bool) -> None:
    assert _is_valid(_token(claims)) is valid


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c", "é.é.é", "e30.W10.x", f"{'[' * 9}.e30.x"])
def test_what_is_no_token_is_an_error(token: str) -> None:
    assert _is_valid(token) is None
