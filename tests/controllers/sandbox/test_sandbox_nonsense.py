"""Whatever is sent to the sandbox, it answers what is wrong with it; nothing is an internal error."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kpolicy_sandbox.schema.types import item_type, struct

from .serving import Api, run
from .test_sandbox_custom import definition

if TYPE_CHECKING:
    from pathlib import Path

    from kpolicy_sandbox.kinds import Resource

NONSENSE: list[Any] = [
    None,
    0,
    -1,
    True,
    "",
    "x",
    "é" * 300,
    [],
    [None],
    ["x"],
    [{}],
    {},
    {"a": None},
    {"a": "b"},
    1.5,
    [[]],
]
LEAVES: dict[str, Any] = {
    "string": "a",
    "bool": True,
    "int32": 1,
    "int64": 1,
    "quantity": "1",
    "intorstring": 1,
}
MEDIA = ("merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml", "json-patch+json")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def made_up(random: Random, kind: str, depth: int = 0) -> Any:
    """Return a value that mostly has the type and is sometimes nonsense."""
    if random.random() < 0.15:
        return random.choice(NONSENSE)
    inner = item_type(kind)
    if kind.startswith("map:"):
        return {
            key: made_up(random, inner, depth + 1)
            for key in random.sample("ab", random.randint(0, 2))
        }
    if inner != kind:
        return [made_up(random, inner, depth + 1) for _ in range(random.randint(0, 2))]
    found = struct(kind)
    if found is None:
        return LEAVES.get(kind) or random.choice(NONSENSE)
    wanted = {"spec", "metadata"} if depth == 0 else set()
    return {
        name: made_up(random, field.type, depth + 1)
        for name, field in found.fields.items()
        if depth < 7 and random.random() < (0.9 if field.required or name in wanted else 0.3)
    }


async def try_out(api: Api, random: Random, resource: Resource) -> list[Any]:
    """Send nonsense to a resource and return what it answered with a 5xx."""
    kind = resource.type or "apps.v1.Deployment"
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    place = (
        f"{root}/namespaces/default/{resource.plural}"
        if resource.namespaced
        else f"{root}/{resource.plural}"
    )
    answers = [await api("POST", place, made_up(random, kind))]
    body = made_up(random, kind)
    body = body if isinstance(body, dict) else {}
    status, made = await api("POST", place, {**body, "metadata": {"name": "n.example.com"}})
    answers.append((status, made))
    if status == 201 and not resource.review:
        one = f"{place}/n.example.com"
        answers.append(await api("GET", place, Accept=TABLE))
        for media in MEDIA:
            value = made_up(random, kind)
            if media == "json-patch+json":
                value = [
                    {
                        "op": random.choice(["add", "remove", "move"]),
                        "path": random.choice(["", "/spec", 1, "/spec/0/x"]),
                    }
                ]
            answers.append(
                await api(
                    "PATCH",
                    f"{one}?fieldManager=f&force=true",
                    value,
                    Content_Type=f"application/{media}",
                )
            )
        merge = "application/merge-patch+json"
        answers += [
            await api("PATCH", f"{one}/{below}", random.choice(NONSENSE), Content_Type=merge)
            for below in ("status", "scale")
        ]
        answers.append(
            await api(
                "DELETE",
                one,
                random.choice(
                    [None, {}, [], {"preconditions": 3}, {"propagationPolicy": "Orphan"}]
                ),
            )
        )
    return [(resource.kind, answer) for status, answer in answers if status >= 500]


@pytest.mark.parametrize("seed", range(6))
def test_nonsense_is_refused_and_never_an_internal_error(tmp_path: Path, seed: int) -> None:
    async def test(api: Api) -> None:
        await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
        random = Random(seed)
        registry = api.sandbox.cluster.registry
        resources = [
            one
            for group, versions in registry.groups().items()
            for version in versions
            for one in registry.in_version(group, version)
        ]
        found = [one for resource in resources for one in await try_out(api, random, resource)]
        assert found == []

    run(tmp_path, test)
