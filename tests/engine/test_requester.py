"""What rules want to know of a request that its object does not show."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model import Rule
from engine.requester import asks_of_request


def rule(match: Any = None, exclude: Any = None, **raw: Any) -> Rule:
    return Rule("r", match=match or {}, exclude=exclude or {}, raw={"match": match, **raw})


def variable(text: str) -> Rule:
    return rule(generate={"data": {"x": text}})


@pytest.mark.parametrize(
    "text",
    [
        "{{ request.object.metadata.labels.team }}",
        "{{request.name}}-{{ request.namespace }}",
        "{{ request.operation || 'BACKGROUND' }}",
        "{{ request.object.spec.request }}",
        "{{ to_string('request.userInfo') }}",
        "a request.userInfo in words",
        "{{ my.request }}",
    ],
)
def test_what_the_object_shows_is_nothing_more(text: str):
    assert asks_of_request(variable(text)) == ""


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("{{ request.userInfo.username }}", "who asks"),
        ("{{ serviceAccountName }}", "who asks"),
        ("{{ request.roles[0] }}", "who asks"),
        ("{{ request.oldObject.metadata.name }}", "the request"),
        ("{{ request.uid }}", "the request"),
        ("{{ to_string(request) }}", "the request"),
        ("{{ @.request.dryRun }}", "the request"),
        ('{{ "request".options }}', "the request"),
    ],
)
def test_what_only_the_request_tells_is_named(text: str, asked: str):
    assert asks_of_request(variable(text)) == asked


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (rule({"any": [{"subjects": [{"kind": "User", "name": "x"}]}]}), "who asks"),
        (rule({"resources": {"kinds": ["Pod"]}}, {"all": [{"clusterRoles": ["x"]}]}), "who asks"),
        (rule({"roles": ["a:b"], "resources": {"kinds": ["Pod"]}}), "who asks"),
        (rule({"any": [{"resources": {"kinds": ["Pod"], "operations": ["DELETE"]}}]}), "deletions"),
        (rule({"any": [{"resources": {"kinds": ["Pod/exec"]}}]}), "requests for subresources"),
        (rule({"any": [{"resources": {"kinds": ["apps/v1/Deployment"], "operations": ["CREATE", "DELETE"]}}]}), ""),
        (rule(context=[{"name": "x", "variable": {"jmesPath": "request.oldObject.spec"}}]), "the request"),
        (rule(celPreconditions=[{"expression": "request.userInfo.username == 'x'"}]), "the request"),
        (rule(celPreconditions=[{"expression": "object.metadata.name == 'x'"}]), ""),
    ],
)  # fmt: skip
def test_blocks_that_go_by_more_than_the_object_are_told(given: Rule, asked: str):
    assert asks_of_request(given) == asked
