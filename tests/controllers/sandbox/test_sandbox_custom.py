from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from kpolicy_sandbox.custom import structural
from kpolicy_sandbox.custom.definitions import rule_causes
from kubectl_kpolicy.session.expressions import EngineExpressions

from .serving import Api, run

if TYPE_CHECKING:
    from pathlib import Path

RULES = partial(rule_causes, EngineExpressions())
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "port": {"x-kubernetes-int-or-string": True},
            },
            "x-kubernetes-validations": [{"rule": "self.size < 100", "message": "too big"}],
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def definition(**more: Any) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {
                "name": "Ready",
                "type": "string",
                "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
            },
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing", "shortNames": ["th"]},
            "versions": [version, {**version, "name": "v1beta1", "storage": False}],
            **more,
        },
    }


def thing(name: str = "t", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": {"size": 3, **spec},
    }


def test_a_definition_is_served_at_once_and_says_so(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        made = await api.post(CRDS, definition())
        states = {one["type"]: one["status"] for one in made["status"]["conditions"]}
        assert states == {"NamesAccepted": "True", "Established": "True"}
        assert made["status"]["storedVersions"] == ["v1"]
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        groups = (await api("GET", "/apis", Accept=accept))[1]["items"]
        group = next(one for one in groups if one["metadata"]["name"] == "example.com")
        assert [one["version"] for one in group["versions"]] == ["v1", "v1beta1"]
        resource = group["versions"][0]["resources"][0]
        assert (resource["shortNames"], resource["singularResource"]) == (["th"], "thing")
        assert [one["subresource"] for one in resource["subresources"]] == ["status"]

    run(tmp_path, test)


def test_objects_are_pruned_defaulted_and_validated_by_their_schema(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(CRDS, definition())
        made = await api.post(THINGS, thing(more="x", free={"any": {"thing": 1}}))
        assert made["spec"] == {"size": 3, "colour": "red", "free": {"any": {"thing": 1}}}
        status, refusal = await api(
            "POST", f"{THINGS}?fieldValidation=Strict", thing("u", more="x")
        )
        assert status == 400
        assert 'unknown field "spec.more"' in refusal["message"]
        status, refusal = await api("POST", THINGS, thing("u", colour="green"))
        assert status == 422
        assert refusal["message"] == (
            'Thing.example.com "u" is invalid: spec.colour: Unsupported value: "green": supported values: "red", "blue"'
        )
        status, refusal = await api("POST", THINGS, thing("u", size="x"))
        assert "spec.size in body must be of type integer" in refusal["message"]
        status, refusal = await api("POST", THINGS, thing("u", size=100))
        assert (status, "too big" in refusal["message"]) == (422, True)

    run(tmp_path, test)


def test_every_served_version_shows_the_same_objects(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(CRDS, definition())
        await api.post(THINGS, thing())
        other = THINGS.replace("/v1/", "/v1beta1/")
        assert (await api.get(f"{other}/t"))["apiVersion"] == "example.com/v1beta1"
        merge = "application/merge-patch+json"
        assert (await api("PATCH", f"{other}/t", {"spec": {"size": 4}}, Content_Type=merge))[
            0
        ] == 200
        found = await api.get(f"{THINGS}/t")
        assert (found["apiVersion"], found["spec"]["size"]) == ("example.com/v1", 4)
        strategic = "application/strategic-merge-patch+json"
        assert (await api("PATCH", f"{THINGS}/t", {}, Content_Type=strategic))[0] == 415

    run(tmp_path, test)


def test_printer_columns_come_from_the_definition(tmp_path: Path) -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"

    async def test(api: Api) -> None:
        await api.post(CRDS, definition())
        await api.post(THINGS, thing())
        ready = {
            "status": {
                "conditions": [
                    {"type": "Other", "status": "x"},
                    {"type": "Ready", "status": "True"},
                ]
            }
        }
        await api("PATCH", f"{THINGS}/t/status", ready, Content_Type="application/merge-patch+json")
        found = (await api("GET", THINGS, Accept=table))[1]
        assert [one["name"] for one in found["columnDefinitions"]] == ["Name", "Size", "Ready"]
        assert found["rows"][0]["cells"] == ["t", 3, "True"]

    run(tmp_path, test)


def test_a_definition_takes_its_objects_with_it(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(CRDS, definition())
        await api.post(THINGS, thing())
        await api("DELETE", f"{CRDS}/things.example.com")
        await api.eventually(CRDS, lambda found: not found["items"])
        assert (await api("GET", THINGS))[0] == 404
        await api.post(CRDS, definition())
        assert (await api.get(THINGS))["items"] == []

    run(tmp_path, test)


def test_a_definition_must_be_named_after_what_it_defines_and_store_one_version(
    tmp_path: Path,
) -> None:
    async def test(api: Api) -> None:
        wrong = definition()
        wrong["metadata"]["name"] = "others.example.com"
        status, refusal = await api("POST", CRDS, wrong)
        assert status == 422
        assert 'must be spec.names.plural+"."+spec.group' in refusal["message"]
        none = definition(
            versions=[
                {
                    "name": "v1",
                    "served": True,
                    "storage": False,
                    "schema": {"openAPIV3Schema": SCHEMA},
                }
            ]
        )
        assert (await api("POST", CRDS, none))[0] == 422

    run(tmp_path, test)


def test_kinds_of_a_definition_are_served_again_after_a_restart(tmp_path: Path) -> None:
    async def first(api: Api) -> None:
        await api.post(CRDS, definition())
        await api.post(THINGS, thing())

    async def second(api: Api) -> None:
        assert (await api.get(f"{THINGS}/t"))["spec"]["size"] == 3

    run(tmp_path, first)
    run(tmp_path, second)


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        ({"type": "string", "maxLength": 2}, "abc", "Too long"),
        ({"type": "string", "pattern": "^a+$"}, "b", "should match"),
        ({"type": "string", "minLength": 1}, "", "at least 1 chars"),
        ({"type": "integer"}, True, 'must be of type integer: "boolean"'),
        ({"type": "array", "maxItems": 1}, [1, 2], "Too many"),
        ({"type": "array", "x-kubernetes-list-type": "set"}, ["a", "a"], "Duplicate value"),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": 1, "b": 2}, "oneOf"),
        ({"anyOf": [{"required": ["a"]}]}, {}, "anyOf"),
        ({"not": {"required": ["a"]}}, {"a": 1}, "not"),
        ({"type": "string", "format": "date-time"}, "tomorrow", "date-time"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"a": 1}, "spec.x.a"),
    ],
)
def test_a_value_that_breaks_a_rule_of_its_schema_is_named(
    schema: Any, value: Any, why: str
) -> None:
    whole = {"properties": {"spec": {"properties": {"x": schema}}}}
    causes = structural.validate(whole, {"metadata": {}, "spec": {"x": value}}, RULES)
    assert len(causes) >= 1
    assert why in f"{causes[0]['field']}: {causes[0]['message']}"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "nullable": True}, None),
        ({"x-kubernetes-int-or-string": True}, "80%"),
        ({"x-kubernetes-int-or-string": True}, 80),
        ({"type": "number"}, 1),
        ({"type": "string", "format": "date-time"}, "2026-01-01T00:00:00Z"),
        (
            {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]},
            [{"n": 1}, {"n": 2}],
        ),
    ],
)
def test_a_value_that_fits_its_schema_is_accepted(schema: Any, value: Any) -> None:
    whole = {"properties": {"spec": {"properties": {"x": schema}}}}
    assert structural.validate(whole, {"spec": {"x": value}}, RULES) == []
