from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .serving import Api, config_map, deployment, pod, run

if TYPE_CHECKING:
    from pathlib import Path

APPS = "/apis/apps/v1/namespaces/default"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


def available(count: int) -> Any:
    return lambda found: (found.get("status") or {}).get("availableReplicas", 0) == count


def test_a_deployment_becomes_a_replica_set_and_running_pods(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(f"{APPS}/deployments", deployment(replicas=2))
        found = await api.eventually(f"{APPS}/deployments/web", available(2))
        states = {one["type"]: one["reason"] for one in found["status"]["conditions"]}
        assert states == {
            "Available": "MinimumReplicasAvailable",
            "Progressing": "NewReplicaSetAvailable",
        }
        made = (await api.get(PODS))["items"]
        assert [one["status"]["phase"] for one in made] == ["Running", "Running"]
        assert made[0]["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
        await api("PATCH", f"{APPS}/deployments/web", {"spec": {"replicas": 0}}, Content_Type=MERGE)
        await api.eventually(PODS, lambda found: not found["items"])

    run(tmp_path, test)


def test_a_new_template_rolls_out_and_the_old_replica_set_stays_empty(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(f"{APPS}/deployments", deployment())
        await api.eventually(f"{APPS}/deployments/web", available(1))
        image = [
            {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}
        ]
        await api(
            "PATCH", f"{APPS}/deployments/web", image, Content_Type="application/json-patch+json"
        )
        await api.eventually(
            PODS,
            lambda found: (
                [one["spec"]["containers"][0]["image"] for one in found["items"]] == ["nginx:2"]
            ),
        )
        sets = (await api.get(f"{APPS}/replicasets"))["items"]
        assert sorted(one["spec"]["replicas"] for one in sets) == [0, 1]
        found = await api.get(f"{APPS}/deployments/web")
        assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"

    run(tmp_path, test)


def test_a_replica_set_that_lost_its_labels_does_not_stop_its_deployment(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(f"{APPS}/deployments", deployment())
        await api.eventually(f"{APPS}/deployments/web", available(1))
        name = (await api.get(f"{APPS}/replicasets"))["items"][0]["metadata"]["name"]
        bare = {"metadata": {"labels": None}}
        await api("PATCH", f"{APPS}/replicasets/{name}", bare, Content_Type=MERGE)
        await api("PATCH", f"{APPS}/deployments/web", {"spec": {"replicas": 3}}, Content_Type=MERGE)
        await api.eventually(
            f"{APPS}/deployments/web",
            lambda found: (found.get("status") or {}).get("updatedReplicas") == 3,
        )

    run(tmp_path, test)


def test_deleting_an_owner_removes_what_it_owns_unless_it_is_to_be_orphaned(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(f"{APPS}/deployments", deployment())
        await api.eventually(f"{APPS}/deployments/web", available(1))
        await api("DELETE", f"{APPS}/deployments/web", {"propagationPolicy": "Foreground"})
        await api.eventually(f"{APPS}/deployments", lambda found: not found["items"])
        assert (await api.get(PODS))["items"] == []
        await api.post(f"{APPS}/deployments", deployment("kept"))
        await api.eventually(f"{APPS}/deployments/kept", available(1))
        await api("DELETE", f"{APPS}/deployments/kept", {"propagationPolicy": "Orphan"})
        await api.eventually(f"{APPS}/deployments", lambda found: not found["items"])
        sets = (await api.get(f"{APPS}/replicasets"))["items"]
        assert [one["metadata"].get("ownerReferences") for one in sets] == [None]

    run(tmp_path, test)


def test_an_object_whose_owner_was_never_there_is_collected(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        orphan = config_map()
        reference = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "gone",
            "uid": "00000000-0000-0000-0000-000000000000",
        }
        orphan["metadata"]["ownerReferences"] = [reference]
        path = "/api/v1/namespaces/default/configmaps"
        await api.post(path, orphan)
        await api.eventually(
            path, lambda found: "a" not in [one["metadata"]["name"] for one in found["items"]]
        )

    run(tmp_path, test)


def test_a_namespace_begins_with_an_account_and_ends_with_its_content(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        made = await api.post("/api/v1/namespaces", {"metadata": {"name": "tmp"}})
        assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "tmp"}
        await api.eventually(
            "/api/v1/namespaces/tmp/serviceaccounts", lambda found: bool(found["items"])
        )
        held = config_map("held", "tmp")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await api.post("/api/v1/namespaces/tmp/configmaps", held)
        status, going = await api("DELETE", "/api/v1/namespaces/tmp")
        assert (status, going["status"]["phase"]) == (200, "Terminating")
        status, refusal = await api(
            "POST", "/api/v1/namespaces/tmp/configmaps", config_map("b", "tmp")
        )
        assert status == 403
        assert refusal["details"]["causes"][0]["reason"] == "NamespaceTerminating"
        path = "/api/v1/namespaces/tmp/configmaps/held"
        await api.eventually(path, lambda found: "deletionTimestamp" in found["metadata"])
        await api("PATCH", path, {"metadata": {"finalizers": None}}, Content_Type=MERGE)
        await api.eventually("/api/v1/namespaces/tmp", lambda found: found.get("code") == 404)
        assert (await api("DELETE", "/api/v1/namespaces/default"))[0] == 403

    run(tmp_path, test)


def test_a_job_completes_and_goes_when_its_time_after_that_is_over(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        jobs = "/apis/batch/v1/namespaces/default/jobs"
        template = {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}
        }
        spec = {"template": template, "ttlSecondsAfterFinished": 90}
        await api.post(jobs, {"metadata": {"name": "pi"}, "spec": spec})
        await api.eventually(
            PODS, lambda found: [one["status"]["phase"] for one in found["items"]] == ["Running"]
        )
        api.sandbox.clock.advance(timedelta(seconds=5))
        done = await api.eventually(f"{jobs}/pi", lambda found: "completionTime" in found["status"])
        assert done["status"]["succeeded"] == 1
        assert "Complete" in [one["type"] for one in done["status"]["conditions"]]
        api.sandbox.clock.advance(timedelta(seconds=60))
        assert (await api("GET", f"{jobs}/pi"))[0] == 200
        status, told = await api("POST", "/sandbox/clock", {"forward": "31s"})
        assert status == 200
        assert told["ahead"] == "96s"
        await api.eventually(f"{jobs}/pi", lambda found: found.get("code") == 404)
        await api.eventually(PODS, lambda found: not found["items"])

    run(tmp_path, test)


def test_the_clock_stays_ahead_over_a_restart_and_never_goes_back(tmp_path: Path) -> None:
    async def first(api: Api) -> None:
        await api("POST", "/sandbox/clock", {"forward": "4h"})
        for wrong in ({"forward": "-1h"}, {"forward": "soon"}, {}, [], {"forward": "9999999h"}):
            assert (await api("POST", "/sandbox/clock", wrong))[0] == 400
        made = await api.post("/api/v1/namespaces/default/configmaps", config_map())
        assert (
            made["metadata"]["creationTimestamp"] >= (await api.get("/sandbox/clock"))["now"][:13]
        )

    async def second(api: Api) -> None:
        assert (await api.get("/sandbox/clock"))["ahead"] == "14400s"

    run(tmp_path, first)
    run(tmp_path, second)


def test_pods_that_are_refused_leave_an_event_and_a_condition(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        bad = deployment()
        bad["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [
            {"name": "no", "mountPath": "/x"}
        ]
        status, _ = await api("POST", f"{APPS}/deployments", bad)
        assert status == 422
        rs = {
            "metadata": {"name": "lonely"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]},
            },
        }
        hook = {
            "metadata": {"name": "w"},
            "webhooks": [{
                "name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            }],
        }  # fmt: skip
        await api.post(
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", hook
        )
        await api.post(f"{APPS}/replicasets", rs)
        events = "/api/v1/namespaces/default/events"
        found = await api.eventually(events, lambda found: bool(found["items"]))
        assert found["items"][0]["reason"] == "FailedCreate"
        told = await api.eventually(
            f"{APPS}/replicasets/lonely", lambda found: "conditions" in found["status"]
        )
        assert told["status"]["conditions"][0]["type"] == "ReplicaFailure"

    run(tmp_path, test)


def test_stateful_and_daemon_sets_have_their_pods(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        for plural, name in (("statefulsets", "db"), ("daemonsets", "agent")):
            made = deployment(name)
            spec = {key: made["spec"][key] for key in ("selector", "template")}
            await api.post(f"{APPS}/{plural}", {"metadata": {"name": name}, "spec": spec})
        found = await api.eventually(PODS, lambda found: len(found["items"]) == 2)
        names = [one["metadata"]["name"] for one in found["items"]]
        assert names[0].startswith("agent-")
        assert names[1] == "db-0"

    run(tmp_path, test)
