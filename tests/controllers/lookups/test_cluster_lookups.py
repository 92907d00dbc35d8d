"""Answers from the API server: the right request for each question, and none that could do more than ask."""

from __future__ import annotations

import pytest

from controllers.kube import Discovery, Forbidden, Invalid, KubeError, NotFound
from controllers.lookups.cluster import ClusterSource
from controllers.lookups.errors import OutsideError
from engine.evaluate import ApiCallLookup, ConfigMapLookup, ListLookup, ObjectLookup
from tests.controllers.kube.apiserver import run
from tests.controllers.kube.fake import FakeClient


def pod(name: str, namespace: str = "dev", **labels: str):
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}


SETTINGS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "dev"},
    "data": {"a": "b"},
}
DEV = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dev"}}


class Scene:
    def __init__(self, *objects) -> None:
        self.client = FakeClient(*objects)
        self.source = ClusterSource(self.client, Discovery(self.client))

    def names(self, **lookup) -> list[str]:
        wanted = ListLookup(**{"api_version": "v1", "kind": "Pod", "namespace": "", **lookup})
        return [obj["metadata"]["name"] for obj in run(self.source.objects(wanted))]


def test_a_config_map_is_the_object() -> None:
    found = run(Scene(SETTINGS).source.config_map(ConfigMapLookup("dev", "settings")))

    assert found["data"] == {"a": "b"}


def test_a_config_map_that_is_not_there_is_an_error() -> None:
    with pytest.raises(NotFound):
        run(Scene().source.config_map(ConfigMapLookup("dev", "settings")))


def test_a_call_is_answered_with_what_the_server_says() -> None:
    found = run(Scene(pod("a")).source.call(ApiCallLookup("GET", "/api/v1/namespaces/dev/pods")))

    assert [item["metadata"]["name"] for item in found["items"]] == ["a"]


def test_a_call_that_we_may_not_make_says_so_first() -> None:
    scene = Scene()
    scene.client.fail("raw", Forbidden("pods is forbidden: you cannot", status=403))
    with pytest.raises(Forbidden, match="permission denied: pods is"):
        run(scene.source.call(ApiCallLookup("GET", "/api/v1/pods")))


@pytest.mark.parametrize(
    "path",
    ["//elsewhere/x", "https://elsewhere/x", "/api/../x", "/api/%2e%2e/x", "/api/v1/a%2fb",
     "/api//v1", "api/v1", "", "/api/v1#x", "/api\\v1", "/api/v1\r\nX: y"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_path_that_is_not_plainly_one_is_refused(method: str, path: str) -> None:
    with pytest.raises(Invalid):
        run(Scene().source.call(ApiCallLookup(method, path)))


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "", "GET /x"])
def test_other_methods_are_refused(method: str) -> None:
    scene = Scene(pod("a"))

    with pytest.raises(OutsideError, match="a call is GET or POST"):
        run(scene.source.call(ApiCallLookup(method, "/api/v1/namespaces/dev/pods/a")))
    assert scene.client.calls == []


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/api/v1/namespaces/dev/pods", "/api/v1/namespaces/dev/pods?dryRun=All"),
        ("/api/v1/x?a=b&dryRun=None", "/api/v1/x?a=b&dryRun=All"),
        ("/api/v1/x?dryrun=", "/api/v1/x?dryRun=All"),
        ("/apis/example.com/v1/reviews", "/apis/example.com/v1/reviews?dryRun=All"),
        (
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        ),
        (
            "/apis/authorization.k8s.io/v1/namespaces/dev/localsubjectaccessreviews",
            "/apis/authorization.k8s.io/v1/namespaces/dev/localsubjectaccessreviews",
        ),
    ],
)
def test_a_post_stores_nothing(path: str, asked: str) -> None:
    scene = Scene()
    scene.client.answers[asked] = {"status": {"allowed": True}}

    found = run(scene.source.call(ApiCallLookup("POST", path, '{"spec":{}}')))

    assert found == {"status": {"allowed": True}}
    assert scene.client.calls[0].body == {"spec": {}}


def test_an_object_is_found_by_its_kind() -> None:
    scene = Scene(pod("a"), DEV)

    found = run(scene.source.object(ObjectLookup("v1", "Pod", "dev", "a")))
    namespace = run(scene.source.object(ObjectLookup("", "Namespace", "", "dev")))

    assert found["metadata"]["name"] == "a"
    assert namespace["kind"] == "Namespace"


def test_an_object_that_is_not_there_is_nothing_and_a_failure_is_an_error() -> None:
    scene = Scene()
    lookup = ObjectLookup("v1", "Pod", "dev", "a")

    assert run(scene.source.object(lookup)) is None
    scene.client.fail("get", KubeError("broken"))
    with pytest.raises(KubeError, match="broken"):
        run(scene.source.object(lookup))


def test_a_kind_that_nobody_has_is_an_error() -> None:
    with pytest.raises(OutsideError, match="the server has no kind `v9/Thing`"):
        run(Scene().source.object(ObjectLookup("v9", "Thing", "dev", "a")))


def test_a_kind_that_nobody_has_is_not_searched_for_with_every_question() -> None:
    async def scenario() -> None:
        client = FakeClient()
        source = ClusterSource(client, Discovery(client), clock=client.clock)
        for seconds, searches in ((0, 1), (29, 1), (2, 2)):
            await client.clock.advance(seconds)
            with pytest.raises(OutsideError):
                await source.object(ObjectLookup("v9", "Thing", "dev", "a"))
            roots = [call for call in client.calls if call.name == "/api"]
            assert len(roots) == searches

    run(scenario())


def test_lists_take_wildcards_and_selectors() -> None:
    scene = Scene(pod("a", team="x"), pod("b"), pod("a", "ops"), pod("c", "dev-2", team="x"))

    assert scene.names() == ["a", "b", "c", "a"]
    assert scene.names(namespace="dev") == ["a", "b"]
    assert scene.names(namespace="dev*") == ["a", "b", "c"]
    assert scene.names(name="a") == ["a", "a"]
    assert scene.names(name="?", namespace="ops") == ["a"]
    assert scene.names(selector='{"matchLabels":{"team":"x"}}') == ["a", "c"]
    assert scene.names(api_version="*") == ["a", "b", "c", "a"]


def test_namespaces_are_listed_whatever_namespace_is_asked_for() -> None:
    assert Scene(DEV).names(kind="Namespace", namespace="ops") == ["dev"]


def test_lists_of_many_pages_are_whole() -> None:
    assert len(Scene(*(pod(f"p{n}") for n in range(1200))).names(namespace="dev")) == 1200
