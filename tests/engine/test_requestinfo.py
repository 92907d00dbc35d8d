"""What a path asks the API server for, with variables and without."""

from __future__ import annotations

import pytest

from engine.requestinfo import ANY, RequestInfo, request_info, request_info_of_template


@pytest.mark.parametrize(
    ("path", "info"),
    [
        ("/api/v1/pods", RequestInfo("list", "", "pods")),
        ("/api/v1/namespaces", RequestInfo("list", "", "namespaces")),
        ("/api/v1/namespaces/shop", RequestInfo("get", "", "namespaces", "", "shop", "shop")),
        ("/api/v1/namespaces/shop/status", RequestInfo("get", "", "namespaces", "status", "shop", "shop")),
        ("/api/v1/namespaces/shop/pods?limit=5", RequestInfo("list", "", "pods", "", "shop")),
        ("/api/v1/namespaces/shop/pods/", RequestInfo("list", "", "pods", "", "shop")),
        ("/api/v1/namespaces/shop/pods/web", RequestInfo("get", "", "pods", "", "shop", "web")),
        ("/api/v1/namespaces/shop/pods/web/log", RequestInfo("get", "", "pods", "log", "shop", "web")),
        ("/api/v1/namespaces/shop/services/web/proxy/a/b", RequestInfo("get", "", "services", "proxy", "shop", "web")),
        ("/apis/apps/v1/deployments", RequestInfo("list", "apps", "deployments")),
        ("/apis/apps/v1/namespaces/shop/deployments/web", RequestInfo("get", "apps", "deployments", "", "shop", "web")),
        ("/api/v1/watch/namespaces/shop/pods", RequestInfo("watch", "", "pods", "", "shop")),
        ("/apis/apps/v1", RequestInfo("get", path="/apis/apps/v1")),
        ("/version", RequestInfo("get", path="/version")),
    ],
)  # fmt: skip
def test_a_path_is_read_as_the_server_reads_it(path: str, info: RequestInfo) -> None:
    assert request_info("GET", path) == info


def test_what_is_posted_is_created() -> None:
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert request_info("post", path) == RequestInfo("create", "authorization.k8s.io", "subjectaccessreviews")  # fmt: skip


@pytest.mark.parametrize(
    "path",
    ["", "api/v1/pods", "//host/x", "/api//v1/pods", "/api/v1/../pods", "/api/v1/./pods", "/api/v1/%2e%2e/pods",
     "/api/v1/a%2fb", "/api/v1\\pods", "/api/v1/pods#x", "/api/v1/po ds", "/api/v1/pods;x", "/api/v1/\u202epods"],
)  # fmt: skip
def test_a_path_that_could_be_read_in_another_way_is_read_in_none(path: str) -> None:
    assert request_info("GET", path) is None


@pytest.mark.parametrize(
    ("path", "info"),
    [
        ("/api/v1/namespaces/{{ request.namespace }}/pods", RequestInfo("list", "", "pods", "", ANY)),
        ("/api/v1/namespaces/shop/pods/{{ x }}-{{ y }}", RequestInfo("get", "", "pods", "", "shop", ANY)),
        ("/api/v1/namespaces/shop/{{ x[?a == 'b/c'] }}", RequestInfo("list", "", ANY, "", "shop")),
        ("/apis/apps/{{ v }}/deployments", RequestInfo("list", "apps", "deployments")),
        ('/api/v1/namespaces/{{ a."{{ b }}" }}/pods', RequestInfo("list", "", "pods", "", ANY)),
        ("/api/v1/pods?labelSelector={{ x }}", RequestInfo("list", "", "pods")),
    ],
)  # fmt: skip
def test_variables_stand_for_anything_in_their_segment(path: str, info: RequestInfo) -> None:
    assert request_info_of_template("GET", path) == info


@pytest.mark.parametrize(
    "path",
    ["{{ path }}", "/{{ a }}/v1/pods", "/apis/{{ group }}/v1/pods", "/apis/{{ apiVersion }}/namespaces/shop/pods",
     "/api/v1/namespaces/shop/%2e%2e/{{ x }}", "/api/v1/{{ unclosed", "\\{{ x }}"],
)  # fmt: skip
def test_of_a_path_that_variables_decide_nothing_is_known(path: str) -> None:
    assert request_info_of_template("GET", path).is_anything


PODS = "/api/v1/namespaces/{{ ns }}/pods/{{ name }}"


@pytest.mark.parametrize(
    ("template", "path", "is_same"),
    [
        (PODS, "/api/v1/namespaces/shop/pods/web", True),
        (PODS, "/api/v1/namespaces/shop/pods/", False),
        (PODS, "/api/v1/namespaces/shop/pods/web/log", False),
        (PODS, "/api/v1/namespaces/shop/secrets/key?x=/pods/web", False),
        (PODS, "/api/v1/namespaces/shop/secrets/pods/web", False),
        (PODS, "/api/v1/namespaces/shop/../ops/pods/web", False),
        ("/api/v1/namespaces/{{ ns }}/pods", "/api/v1/namespaces/shop/pods", True),
        ("/api/v1/namespaces/{{ ns }}/pods", "/api/v1/namespaces/shop/secrets/key?/pods", False),
        ("/api/v1/namespaces/shop/{{ what }}", "/api/v1/namespaces/shop/secrets/key", False),
        ("/api/v1/namespaces/shop/{{ what }}", "/api/v1/namespaces/shop/secrets", True),
        ("{{ path }}", "/apis/apps/v1/deployments", True),
    ],
)
def test_a_path_is_held_to_what_its_template_could_ask(
    template: str, path: str, is_same: bool
) -> None:
    info = request_info("GET", path)
    asked = request_info_of_template("GET", template)

    assert (info is not None and asked.includes(info)) is is_same
