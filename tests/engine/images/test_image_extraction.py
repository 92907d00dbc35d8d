"""Which images are found in which objects, and under which names."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import EvaluationError, LimitError
from engine.images import extract_images, find_images

POD_SPEC = {
    "containers": [{"name": "a", "image": "x/one:1"}, {"name": "b-c", "image": "two"}],
    "initContainers": [{"name": "a", "image": "r.io/init"}],
    "ephemeralContainers": [{"name": "e", "image": "e:2"}],
}


def wrapped(kind: str, *path: str) -> dict[str, Any]:
    value: Any = POD_SPEC
    for field in reversed(path):
        value = {field: value}
    return {"kind": kind, **value}


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Pod", ("spec",)),
        ("CronJob", ("spec", "jobTemplate", "spec", "template", "spec")),
        *(
            (kind, ("spec", "template", "spec"))
            for kind in (
                "DaemonSet",
                "Deployment",
                "Job",
                "ReplicaSet",
                "ReplicationController",
                "StatefulSet",
            )
        ),
    ],
)
def test_every_pod_carrying_kind_gives_its_three_container_lists(
    kind: str, path: tuple[str, ...]
) -> None:
    images = extract_images(wrapped(kind, *path))

    base = "/" + "/".join(path)
    assert {g: list(named) for g, named in images.items()} == {
        "initContainers": ["a"],
        "containers": ["a", "b-c"],
        "ephemeralContainers": ["e"],
    }
    assert images["containers"]["b-c"]["jsonPointer"] == f"{base}/containers/1/image"
    assert images["initContainers"]["a"]["reference"] == "r.io/init:latest"


def test_other_kinds_and_objects_without_a_kind_have_no_images() -> None:
    assert extract_images({"kind": "ConfigMap", "spec": POD_SPEC}) == {}
    assert extract_images({"spec": POD_SPEC}) == {}


def test_empty_or_null_lists_are_left_out() -> None:
    pod = {"kind": "Pod", "spec": {"containers": [], "initContainers": None}}

    assert extract_images(pod) == {}
    assert extract_images({"kind": "Pod", "spec": None}) == {}


def test_a_container_without_an_image_is_left_out() -> None:
    pod = {"kind": "Pod", "spec": {"containers": [{"name": "a"}, {"name": "b", "image": "b"}]}}

    assert list(extract_images(pod)["containers"]) == ["b"]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"containers": "x"}, "invalid type"),
        ({"containers": ["x"]}, "invalid image config"),
        ("x", "invalid image config"),
        ({"containers": [{"image": "a"}]}, "invalid key"),
        (
            {"containers": [{"name": "a", "image": "A"}]},
            "invalid image 'A' (bad image: docker.io/A",
        ),
    ],
)
def test_unreadable_shapes_are_errors(spec: Any, text: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        extract_images({"kind": "Pod", "spec": spec})

    assert caught.value.message.startswith(text)


def test_a_custom_extractor_without_value_takes_the_last_part_of_its_path() -> None:
    task = {"kind": "Task", "spec": {"steps": [{"name": "s", "image": "a:1"}, {"image": "b:2"}]}}

    images = extract_images(task, {"Task": [{"path": "/spec/steps/*/image"}]})

    assert list(images) == ["custom"]
    assert {key: shown["reference"] for key, shown in images["custom"].items()} == {
        "/spec/steps/0/image": "docker.io/a:1",
        "/spec/steps/1/image": "docker.io/b:2",
    }


def test_a_custom_extractor_names_its_group_key_and_value() -> None:
    task = {"kind": "Task", "spec": {"steps": {"x": {"id": "s", "img": "a:1"}}}}
    extractor = {"path": "/spec/steps/*", "value": "img", "name": "steps", "key": "id"}

    images = extract_images(task, {"Task": [extractor]})

    assert images["steps"]["s"]["jsonPointer"] == "/spec/steps/x/img"


def test_extractors_of_a_kind_replace_the_built_in_ones_for_that_kind_only() -> None:
    own = {"Pod": [{"path": "/spec/containers/*/image"}]}

    assert list(extract_images(wrapped("Pod", "spec"), own)) == ["custom"]
    assert "containers" in extract_images(wrapped("Job", "spec", "template", "spec"), own)


def test_an_empty_extractor_list_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="no extractors found for Task"):
        extract_images({"kind": "Task"}, {"Task": []})


def test_an_extractor_without_a_path_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="needs a `path`"):
        extract_images({"kind": "Task"}, {"Task": [{"path": " / "}]})


def test_long_paths_and_many_images_are_refused() -> None:
    with pytest.raises(LimitError):
        extract_images({"kind": "T"}, {"T": [{"path": "/a" * 40}]})
    many = [{"name": str(n), "image": "a"} for n in range(5_001)]
    with pytest.raises(LimitError):
        find_images({"kind": "Pod", "spec": {"containers": many}})
