from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson

from .serving import Kubectl, config_map, deployment, needs_kubectl, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

pytestmark = needs_kubectl


def with_kubectl(folder: Path, test: Callable[[Kubectl], Awaitable[None]]) -> None:
    run(folder, lambda api: test(Kubectl(api.sandbox)))


def stream_of(*objects: Any) -> str:
    return "\n".join(orjson.dumps(one).decode() for one in objects)


def test_create_get_describe_and_delete(tmp_path: Path) -> None:
    async def test(kubectl: Kubectl) -> None:
        assert await kubectl.ok("create", "ns", "foo") == "namespace/foo created\n"
        await kubectl.ok("create", "deployment", "web", "--image=nginx", "-n", "foo")
        assert "successfully rolled out" in await kubectl.ok(
            "rollout", "status", "deploy/web", "-n", "foo", "--timeout=20s"
        )
        rows = (await kubectl.ok("get", "deploy,rs,pods", "-n", "foo", "--no-headers")).splitlines()
        assert [line.split()[1] for line in rows if line] == ["1/1", "1", "1/1"]
        shown = await kubectl.ok("describe", "deploy", "web", "-n", "foo")
        assert "1 desired | 1 updated | 1 total | 1 available" in shown
        assert (
            await kubectl.ok("delete", "ns", "foo", "--timeout=20s") == 'namespace "foo" deleted\n'
        )
        answer = await kubectl("get", "ns", "foo")
        assert answer.err == 'Error from server (NotFound): namespaces "foo" not found\n'

    with_kubectl(tmp_path, test)


def test_apply_creates_changes_compares_and_tries_out(tmp_path: Path) -> None:
    async def test(kubectl: Kubectl) -> None:
        both = {"apiVersion": "v1", "kind": "List", "items": [config_map(k="1"), deployment()]}
        assert (
            await kubectl.ok("apply", "-f", "-", stdin=both)
            == "configmap/a created\ndeployment.apps/web created\n"
        )
        assert (
            await kubectl.ok("apply", "-f", "-", stdin=both)
            == "configmap/a unchanged\ndeployment.apps/web unchanged\n"
        )
        changed = stream_of(config_map(k="2"), deployment(image="nginx:2"))
        assert (await kubectl("diff", "-f", "-", stdin=changed)).code == 1
        tried = await kubectl.ok("apply", "--dry-run=server", "-f", "-", stdin=changed)
        assert (
            tried
            == "configmap/a configured (server dry run)\ndeployment.apps/web configured (server dry run)\n"
        )
        assert await kubectl.ok("get", "cm", "a", "-o", "jsonpath={.data.k}") == "1"
        await kubectl.ok("apply", "-f", "-", stdin=changed)
        assert await kubectl.ok("get", "cm", "a", "-o", "jsonpath={.data.k}") == "2"
        answer = await kubectl("apply", "-f", "-", stdin={**config_map("b"), "dota": {}})
        assert 'strict decoding error: unknown field "dota"' in answer.err

    with_kubectl(tmp_path, test)


def test_apply_on_the_server_names_who_is_in_conflict(tmp_path: Path) -> None:
    async def test(kubectl: Kubectl) -> None:
        assert (
            await kubectl.ok("apply", "--server-side", "-f", "-", stdin=config_map(k="1"))
            == "configmap/a serverside-applied\n"
        )
        answer = await kubectl(
            "apply", "--server-side", "--field-manager=other", "-f", "-", stdin=config_map(k="2")
        )
        assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.k' in answer.err
        more = ("--field-manager=other", "--force-conflicts")
        await kubectl.ok("apply", "--server-side", *more, "-f", "-", stdin=config_map(k="2"))

    with_kubectl(tmp_path, test)


def test_labels_annotations_patches_and_edits(tmp_path: Path) -> None:
    async def test(kubectl: Kubectl) -> None:
        await kubectl.ok("create", "cm", "a", "--from-literal=k=v")
        await kubectl.ok("label", "cm", "a", "x=y")
        await kubectl.ok("annotate", "cm", "a", "note=hi")
        await kubectl.ok("patch", "cm", "a", "-p", '{"data":{"z":"1"}}')
        found = orjson.loads(await kubectl.ok("get", "cm", "a", "-o", "json"))
        assert (found["metadata"]["labels"], found["data"]) == ({"x": "y"}, {"k": "v", "z": "1"})
        await kubectl.ok("label", "cm", "a", "x-")
        assert await kubectl.ok("edit", "cm", "a") == "configmap/a edited\n"
        assert await kubectl.ok("get", "cm", "a", "-o", "jsonpath={.data.k}") == "edited"
        assert await kubectl.ok("get", "cm", "-l", "x=y") == ""
        await kubectl.ok("create", "secret", "generic", "s", "--from-literal=p=q")
        assert await kubectl.ok("get", "secret", "s", "-o", "jsonpath={.data.p}") == "cQ=="

    with_kubectl(tmp_path, test)


def test_rights_are_explained_as_another_user(tmp_path: Path) -> None:
    async def test(kubectl: Kubectl) -> None:
        await kubectl.ok("create", "role", "r", "--verb=get,list", "--resource=pods")
        await kubectl.ok("create", "rolebinding", "r", "--role=r", "--user=jane")
        assert await kubectl.ok("auth", "can-i", "list", "pods", "--as=jane") == "yes\n"
        assert (await kubectl("auth", "can-i", "delete", "pods", "--as=jane")).out == "no\n"
        answer = await kubectl("delete", "pod", "x", "--as=jane")
        assert answer.err.startswith(
            'Error from server (Forbidden): pods "x" is forbidden: User "jane" cannot delete'
        )
        assert "Groups      [dev system:authenticated]" in await kubectl.ok(
            "auth", "whoami", "--as=jane", "--as-group=dev"
        )
        await kubectl.ok("create", "sa", "robot")
        token = (await kubectl.ok("create", "token", "robot")).strip()
        shown = await kubectl.ok("auth", "whoami", "--kubeconfig", str(bearing(kubectl, token)))
        assert "system:serviceaccount:default:robot" in shown

    with_kubectl(tmp_path, test)


def bearing(kubectl: Kubectl, token: str) -> Path:
    """Write a kubeconfig that has only a token."""
    place = kubectl.sandbox.folder / "other"
    made = orjson.loads(kubectl.sandbox.kubeconfig.read_bytes())
    made["users"][0]["user"] = {"token": token}
    place.write_bytes(orjson.dumps(made))
    return place


def test_kinds_are_listed_and_explained(tmp_path: Path) -> None:
    async def test(kubectl: Kubectl) -> None:
        assert "deployments" in await kubectl.ok("api-resources", "--categories=all")
        shown = await kubectl.ok("explain", "pod.spec.containers.image")
        assert "FIELD: image <string>" in shown
        assert "v1.32.4+kpolicy-sandbox" in await kubectl.ok("version")
        assert await kubectl.ok("get", "--raw", "/readyz") == "ok"

    with_kubectl(tmp_path, test)


def test_custom_kinds_of_kpolicy_are_served_explained_and_shown(tmp_path: Path) -> None:
    from controllers.manifests.crds import definitions

    policy = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "rules": [
                {
                    "name": "r",
                    "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                    "validate": {"message": "m", "pattern": {"metadata": {"name": "?*"}}},
                }
            ]
        },
    }

    async def test(kubectl: Kubectl) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(definitions())}
        await kubectl.ok("apply", "--server-side", "-f", "-", stdin=items)
        assert "condition met" in await kubectl.ok(
            "wait",
            "--for=condition=Established",
            "crd",
            "clusterpolicies.kyverno.io",
            "--timeout=10s",
        )
        assert (
            await kubectl.ok("apply", "-f", "-", stdin=policy)
            == "clusterpolicy.kyverno.io/p created\n"
        )
        assert (
            await kubectl.ok("apply", "-f", "-", stdin=policy)
            == "clusterpolicy.kyverno.io/p unchanged\n"
        )
        header = (await kubectl.ok("get", "cpol")).splitlines()[0]
        assert header.split() == ["NAME", "ADMISSION", "BACKGROUND", "READY", "AGE", "MESSAGE"]
        assert "rules" in await kubectl.ok("explain", "clusterpolicy.spec")

    with_kubectl(tmp_path, test)


def test_a_watch_prints_what_happens(tmp_path: Path) -> None:
    async def test(kubectl: Kubectl) -> None:
        watching = await kubectl.start("get", "cm", "-w", "--no-headers")
        assert watching.stdout is not None
        assert b"kube-root-ca.crt" in await asyncio.wait_for(watching.stdout.readline(), 20)
        await kubectl.ok("create", "cm", "seen")
        assert (await asyncio.wait_for(watching.stdout.readline(), 20)).startswith(b"seen ")
        watching.terminate()
        await watching.communicate()

    with_kubectl(tmp_path, test)


def test_waiting_ends_when_it_is_so(tmp_path: Path) -> None:
    async def test(kubectl: Kubectl) -> None:
        await kubectl.ok("run", "p", "--image=busybox", "--restart=Never")
        await kubectl.ok("wait", "pod/p", "--for=condition=Ready", "--timeout=20s")
        await kubectl.ok("create", "job", "j", "--image=busybox")
        await kubectl.ok("wait", "job/j", "--for=condition=Complete", "--timeout=20s")
        await kubectl.ok("delete", "pod", "p")
        answer = await kubectl("logs", "job/j")
        assert answer.err.startswith(
            "Error from server (NotImplemented): the sandbox cannot show logs"
        )

    with_kubectl(tmp_path, test)


def test_scaling_setting_images_and_undoing(tmp_path: Path) -> None:
    async def test(kubectl: Kubectl) -> None:
        await kubectl.ok("apply", "-f", "-", stdin=deployment())
        await kubectl.ok("scale", "deploy/web", "--replicas=2")
        await kubectl.ok("set", "image", "deploy/web", "c=nginx:2")
        await kubectl.ok("rollout", "status", "deploy/web", "--timeout=20s")
        await kubectl.ok("rollout", "undo", "deploy/web")
        await kubectl.ok("rollout", "status", "deploy/web", "--timeout=20s")
        image = "jsonpath={.spec.template.spec.containers[0].image} {.status.availableReplicas}"
        assert await kubectl.ok("get", "deploy", "web", "-o", image) == "nginx 2"

    with_kubectl(tmp_path, test)


def test_events_of_an_object_are_in_its_description(tmp_path: Path) -> None:
    async def test(kubectl: Kubectl) -> None:
        await kubectl.ok("create", "cm", "a")
        found = orjson.loads(await kubectl.ok("get", "cm", "a", "-o", "json"))
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "a",
                "namespace": "default",
                "uid": found["metadata"]["uid"],
            },
            "reason": "PolicyViolation",
            "type": "Warning",
            "message": "it is so",
        }
        await kubectl.ok("create", "-f", "-", stdin=event)
        assert "it is so" in await kubectl.ok("describe", "cm", "a")
        assert "configmap/a" in await kubectl.ok("get", "events")
        assert "PolicyViolation" in await kubectl.ok("events")

    with_kubectl(tmp_path, test)
