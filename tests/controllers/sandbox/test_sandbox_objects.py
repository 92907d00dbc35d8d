from __future__ import annotations

from typing import TYPE_CHECKING

from .serving import Api, config_map, deployment, pod, run

if TYPE_CHECKING:
    from pathlib import Path

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


def test_a_created_object_has_what_only_the_server_gives(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        made = await api.post(MAPS, config_map(k="v"))

        meta = made["metadata"]
        assert len(meta["uid"]) == 36
        assert meta["creationTimestamp"].endswith("Z")
        assert int(meta["resourceVersion"]) > 1
        assert await api.get(f"{MAPS}/a") == made
        again = await api("POST", MAPS, config_map())
        assert again[0] == 409
        assert again[1]["reason"] == "AlreadyExists"
        assert again[1]["message"] == 'configmaps "a" already exists'

    run(tmp_path, test)


def test_a_generated_name_ends_in_five_letters(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        made = await api.post(MAPS, {"metadata": {"generateName": "web-"}})

        assert made["metadata"]["name"].startswith("web-")
        assert len(made["metadata"]["name"]) == 9

    run(tmp_path, test)


def test_a_write_with_an_old_resource_version_is_a_conflict(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        made = await api.post(MAPS, config_map(k="1"))
        status, second = await api("PUT", f"{MAPS}/a", {**made, "data": {"k": "2"}})
        assert status == 200
        assert second["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]

        status, refusal = await api("PUT", f"{MAPS}/a", {**made, "data": {"k": "3"}})

        assert (status, refusal["reason"]) == (409, "Conflict")
        assert "the object has been modified" in refusal["message"]

    run(tmp_path, test)


def test_a_write_that_changes_nothing_keeps_the_resource_version(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        made = await api.post(MAPS, config_map(k="1"))
        _, second = await api("PUT", f"{MAPS}/a", made)
        assert second["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]

    run(tmp_path, test)


def test_a_dry_run_stores_nothing(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        before = api.sandbox.cluster.store.revision
        await api.post(f"{MAPS}?dryRun=All", config_map())
        assert (await api("GET", f"{MAPS}/a"))[0] == 404
        await api.post(MAPS, config_map())
        after = api.sandbox.cluster.store.revision
        await api("PATCH", f"{MAPS}/a?dryRun=All", {"data": {"z": "1"}}, Content_Type=MERGE)
        await api("DELETE", f"{MAPS}/a?dryRun=All")

        assert (await api.get(f"{MAPS}/a")).get("data") is None
        assert api.sandbox.cluster.store.revision >= after >= before

    run(tmp_path, test)


def test_finalizers_hold_an_object_until_they_are_gone(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        held = config_map()
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await api.post(MAPS, held)

        status, going = await api("DELETE", f"{MAPS}/a")

        assert status == 200
        assert going["metadata"]["deletionTimestamp"]
        assert (await api.get(f"{MAPS}/a"))["metadata"]["finalizers"] == ["example.com/hold"]
        more = {"metadata": {"finalizers": ["example.com/hold", "example.com/new"]}}
        status, refusal = await api("PATCH", f"{MAPS}/a", more, Content_Type=MERGE)
        assert status == 422
        assert "no new finalizers can be added" in refusal["message"]
        await api("PATCH", f"{MAPS}/a", {"metadata": {"finalizers": None}}, Content_Type=MERGE)
        assert (await api("GET", f"{MAPS}/a"))[0] == 404

    run(tmp_path, test)


def test_deleting_minds_the_uid_that_was_meant(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(MAPS, config_map())
        status, refusal = await api("DELETE", f"{MAPS}/a", {"preconditions": {"uid": "other"}})
        assert status == 409
        assert "Precondition failed: UID" in refusal["message"]
        assert (await api("GET", f"{MAPS}/a"))[0] == 200

    run(tmp_path, test)


def test_generation_counts_changes_of_the_spec_only_and_status_has_its_own_path(
    tmp_path: Path,
) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments/web"

    async def test(api: Api) -> None:
        made = await api.post(path.rpartition("/")[0], {**deployment(), "status": {"replicas": 9}})
        assert made["metadata"]["generation"] == 1
        assert made.get("status", {}).get("replicas") != 9
        _, labelled = await api(
            "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, Content_Type=MERGE
        )
        assert labelled["metadata"]["generation"] == 1
        _, scaled = await api("PATCH", path, {"spec": {"replicas": 2}}, Content_Type=MERGE)
        assert scaled["metadata"]["generation"] == 2
        both = {"spec": {"replicas": 7}, "status": {"observedGeneration": 41}}
        _, told = await api("PATCH", f"{path}/status", both, Content_Type=MERGE)
        assert told["spec"]["replicas"] == 2
        assert told["status"]["observedGeneration"] == 41

    run(tmp_path, test)


def test_the_scale_of_a_deployment_is_read_and_written_on_its_own(tmp_path: Path) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"

    async def test(api: Api) -> None:
        await api.post(path, deployment())
        scale = await api.get(f"{path}/web/scale")
        assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 1)
        scale["spec"]["replicas"] = 3
        scale["metadata"].pop("resourceVersion")
        status, _ = await api("PUT", f"{path}/web/scale", scale)
        assert status == 200
        assert (await api.get(f"{path}/web"))["spec"]["replicas"] == 3

    run(tmp_path, test)


def test_defaults_are_there_before_anybody_looks(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        made = await api.post(PODS, pod(hostNetwork=False))

        spec = made["spec"]
        assert spec["restartPolicy"] == "Always"
        assert spec["serviceAccountName"] == "default"
        assert spec["containers"][0]["imagePullPolicy"] == "Always"
        assert "hostNetwork" not in spec

    run(tmp_path, test)


def test_unknown_fields_are_refused_warned_of_or_dropped_as_asked(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        wrong = {**config_map(), "dota": {}}
        status, refusal = await api("POST", f"{MAPS}?fieldValidation=Strict", wrong)
        assert status == 400
        assert 'strict decoding error: unknown field "dota"' in refusal["message"]
        async with api.open("POST", f"{MAPS}?fieldValidation=Warn", wrong) as answer:
            assert answer.status == 201
            assert answer.headers["Warning"] == '299 - "unknown field \\"dota\\""'
            assert "dota" not in await answer.json()

    run(tmp_path, test)


def test_invalid_objects_are_refused_field_by_field(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        status, refusal = await api("POST", MAPS, config_map("Not_Valid"))
        assert (status, refusal["reason"]) == (422, "Invalid")
        assert refusal["details"]["causes"][0]["field"] == "metadata.name"
        status, refusal = await api("POST", PODS, {"metadata": {"name": "p"}, "spec": {}})
        assert status == 422
        assert "spec.containers: Required value" in refusal["message"]
        status, refusal = await api("POST", PODS, pod(containers="x"))
        assert status == 400
        assert (
            "cannot unmarshal string into Go struct field Pod.spec.containers" in refusal["message"]
        )

    run(tmp_path, test)


def test_an_object_belongs_into_a_namespace_that_is_there(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        status, refusal = await api(
            "POST", "/api/v1/namespaces/no/configmaps", config_map(namespace="no")
        )
        assert (status, refusal["message"]) == (404, 'namespaces "no" not found')
        status, _ = await api("POST", MAPS, config_map(namespace="other"))
        assert status == 400

    run(tmp_path, test)


def test_lists_come_in_pages_and_by_selectors(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        for name in ("a", "b", "c"):
            made = config_map(name)
            made["metadata"]["labels"] = {"tier": name}
            await api.post(MAPS, made)
        chosen = await api.get(f"{MAPS}?labelSelector=tier+in+(a,b)&limit=1")
        assert chosen["kind"] == "ConfigMapList"
        assert [one["metadata"]["name"] for one in chosen["items"]] == ["a"]
        token = chosen["metadata"]["continue"]
        rest = await api.get(f"{MAPS}?labelSelector=tier+in+(a,b)&limit=1&continue={token}")
        assert [one["metadata"]["name"] for one in rest["items"]] == ["b"]
        assert "continue" not in rest["metadata"]
        named = await api.get(f"{MAPS}?fieldSelector=metadata.name%3Dc")
        assert len(named["items"]) == 1
        status, refusal = await api("GET", f"{MAPS}?fieldSelector=spec.x%3Dc")
        assert (status, refusal["message"]) == (400, "field label not supported: spec.x")

    run(tmp_path, test)


def test_every_kind_of_patch_changes_what_it_says(tmp_path: Path) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments/web"

    async def test(api: Api) -> None:
        await api.post(path.rpartition("/")[0], deployment())
        more = {"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "busybox"}]}}}}
        _, made = await api(
            "PATCH", path, more, Content_Type="application/strategic-merge-patch+json"
        )
        names = [one["name"] for one in made["spec"]["template"]["spec"]["containers"]]
        assert sorted(names) == ["c", "d"]
        test = [{"op": "test", "path": "/spec/replicas", "value": 5}]
        status, _ = await api("PATCH", path, test, Content_Type="application/json-patch+json")
        assert status == 422
        status, refusal = await api("PATCH", path, {}, Content_Type="text/plain")
        assert status == 415
        assert "accepted media types include" in refusal["message"]

    run(tmp_path, test)


def test_server_side_apply_owns_fields_and_refuses_to_take_them_from_others(tmp_path: Path) -> None:
    path = f"{MAPS}/a"
    apply = {"Content_Type": "application/apply-patch+yaml"}

    async def test(api: Api) -> None:
        status, _ = await api(
            "PATCH", f"{path}?fieldManager=one", config_map(k="1", l="1"), **apply
        )
        assert status == 201
        status, refusal = await api("PATCH", f"{path}?fieldManager=two", config_map(k="2"), **apply)
        assert status == 409
        assert refusal["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.k'
        status, forced = await api(
            "PATCH", f"{path}?fieldManager=two&force=true", config_map(k="2"), **apply
        )
        assert (status, forced["data"]) == (200, {"k": "2", "l": "1"})
        _, dropped = await api("PATCH", f"{path}?fieldManager=one", config_map(), **apply)
        assert dropped["data"] == {"k": "2"}

    run(tmp_path, test)


def test_events_of_both_groups_are_the_same_objects(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        event = {
            "metadata": {"name": "e"},
            "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
            "note": "hello",
            "reason": "Greeting",
            "type": "Normal",
            "reportingController": "example.com/c",
            "eventTime": "2026-01-01T00:00:00.000000Z",
        }
        await api.post("/apis/events.k8s.io/v1/namespaces/default/events", event)
        core = await api.get("/api/v1/namespaces/default/events/e")
        assert (core["apiVersion"], core["message"], core["reportingComponent"]) == (
            "v1",
            "hello",
            "example.com/c",
        )
        assert core["involvedObject"]["name"] == "p"
        found = await api.get(
            "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dp"
        )
        assert len(found["items"]) == 1
        new = await api.get("/apis/events.k8s.io/v1/namespaces/default/events/e")
        assert (new["note"], new["regarding"]["kind"]) == ("hello", "Pod")

    run(tmp_path, test)


def test_what_was_stored_is_there_after_a_restart(tmp_path: Path) -> None:
    versions = []

    async def first(api: Api) -> None:
        versions.append((await api.post(MAPS, config_map(k="v")))["metadata"]["resourceVersion"])

    async def second(api: Api) -> None:
        found = await api.get(f"{MAPS}/a")
        assert found["data"] == {"k": "v"}
        assert found["metadata"]["resourceVersion"] == versions[0]
        made = await api.post(MAPS, config_map("b"))
        assert int(made["metadata"]["resourceVersion"]) > int(versions[0])

    run(tmp_path, first)
    run(tmp_path, second)


def test_what_the_sandbox_cannot_do_it_says_in_a_sentence(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(PODS, pod())
        status, refusal = await api("GET", f"{PODS}/p/log")
        assert (status, refusal["reason"]) == (501, "NotImplemented")
        assert refusal["message"].startswith("the sandbox cannot show logs")
        assert (await api("GET", "/apis/nothing/v1/things"))[0] == 404
        assert (await api("POST", f"{PODS}/p/evaporate", {}))[0] == 404
        assert (await api("POST", "/api/v1/pods", pod()))[0] == 405

    run(tmp_path, test)
