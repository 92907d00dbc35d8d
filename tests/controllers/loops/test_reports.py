"""Reports: rows from admission and from the scan, one report for each resource, nothing written without a reason."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from controllers.kube import AlreadyExists, Forbidden, Kind, KubeError
from controllers.kube.kinds import (
    CLUSTER_OPEN_REPORTS,
    CLUSTER_POLICY_REPORTS,
    CONFIG_MAPS,
    OPEN_REPORTS,
    OPENREPORTS,
    POLICY_REPORTS,
)
from controllers.loops.reports.scan import BackgroundScan
from controllers.loops.reports.sending import AT_ONCE, REQUESTS
from controllers.loops.reports.sweeping import ReportSweep
from controllers.runtime.configuration import read_configuration
from controllers.runtime.evaluating import evaluate_with
from controllers.runtime.sink import Verdict
from engine.model import RuleResult, RuleType, Status, UserInfo, review_of
from tests.clock import settle

from .staging import Scene, cluster_policy, config_map, matching, namespace, request_of, scene


def needs(label: str, kind: str = "ConfigMap", **spec: Any) -> dict[str, Any]:
    check = {
        "name": f"needs-{label}",
        "match": matching(kind),
        "validate": {"message": f"{label} is needed", "pattern": {"metadata": {"labels": {label: "?*"}}}},
    }  # fmt: skip
    return cluster_policy(f"ask-{label}", check, **spec)


def scanning(made: Scene) -> BackgroundScan:
    scan = BackgroundScan(made.context)
    made.start(scan.run())
    made.start(ReportSweep(made.context).run())
    return scan


def rows(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(row["policy"], row["rule"], row["result"]) for row in report["results"]]


async def admitted(
    made: Scene, obj: dict[str, Any], *, allowed: bool = True, **fields: Any
) -> None:
    """Hand the results of all rules about an object to the sink, as the webhook does after its answer."""
    request = request_of(obj)
    review = replace(review_of(obj), request=request, **fields)
    route = made.context.snapshot.routes["all"]
    found = []
    for policies in (route.mutate, route.blocking, route.audit):
        inputs = made.context.inputs("x")
        done = await evaluate_with(made.context.resolver, policies, review, inputs)
        found += done.results
    verdict = Verdict(allowed, made.clock.now(), request, is_proven=True)
    if made.sink.follows(found):
        await made.sink.results(review, found, verdict)


class ListsTaken:
    """Has a client write lists of reports as a report store does; `refusing` is what it says to every list instead."""

    def __init__(self, made: Scene, refusing: KubeError | None = None) -> None:
        self._create, self._update = made.client.create, made.client.update
        self.sizes: list[int] = []
        self.under_way = self.most = 0
        self._refusing = refusing
        made.client.create = self.create  # type: ignore[method-assign] # - a store in its place

    async def create(self, kind: Kind, obj: dict[str, Any], **options: Any) -> dict[str, Any]:
        if obj["kind"] != f"{kind.kind}List":
            return await self._create(kind, obj, **options)
        self.sizes.append(len(obj["items"]))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        # longer than others take to have something to write
        await settle(20)
        self.under_way -= 1
        if self._refusing is not None:
            raise self._refusing
        return {"items": [await self._written(kind, one) for one in obj["items"]]}

    async def _written(self, kind: Kind, report: dict[str, Any]) -> dict[str, Any]:
        write = self._update if report["metadata"].get("resourceVersion") else self._create
        try:
            await write(kind, report)
        except KubeError as error:
            return {"status": "Failure", "reason": error.reason, "code": error.status}
        return {"status": "Success"}


def many(count: int) -> list[dict[str, Any]]:
    return [config_map(f"c{number:03}") for number in range(count)]


async def scanned(made: Scene, count: int) -> None:
    """Have the scan make so many reports."""
    scanning(made)
    await made.rest(5)
    assert len(made.stored(POLICY_REPORTS)) == count


async def scanned_again(made: Scene) -> None:
    """Have the scan change all reports, by another policy."""
    made.put(needs("owner"))
    await made.rest(5)
    assert {len(one["results"]) for one in made.stored(POLICY_REPORTS)} == {2}


def test_reports_go_together_to_a_store_and_each_once():
    async def play():
        async with scene(needs("team"), *many(50), chooses_reports=True) as made:
            lists = ListsTaken(made)
            await scanned(made, 50)
            # the first goes with whatever had something to write by then, all others with the second
            assert sum(lists.sizes) <= 50
            assert len(lists.sizes) <= 2
            lists.sizes.clear()
            await scanned_again(made)
            assert lists.sizes

    asyncio.run(play())


def test_a_second_list_goes_while_one_is_under_way_once_it_is_full_and_no_third():
    async def play():
        async with scene(needs("team"), *many(400), chooses_reports=True) as made:
            lists = ListsTaken(made)
            await scanned(made, 400)
            assert (max(lists.sizes), lists.most) == (AT_ONCE, REQUESTS)

    asyncio.run(play())


def test_reports_are_read_together_from_a_store_and_one_by_one_from_one_that_knows_no_places():
    async def play(*, knows_places: bool):
        async with scene(needs("team"), *many(100), chooses_reports=True) as made:
            ListsTaken(made)
            listed = made.client.list

            async def passing_over(*args: Any, only: Any = (), **options: Any) -> Any:
                return await listed(*args, **options)

            if not knows_places:
                made.client.list = passing_over  # type: ignore[method-assign] # - a store of a release before
            await scanned(made, 100)
            made.client.calls.clear()
            await scanned_again(made)
            read = sum(
                one.verb == "get" and one.resource == "policyreports" for one in made.client.calls
            )
            assert read == (0 if knows_places else 100)

    asyncio.run(play(knows_places=True))
    asyncio.run(play(knows_places=False))


def test_a_report_that_a_store_refuses_in_a_list_is_read_and_written_again():
    async def play():
        async with scene(needs("team"), *many(3), chooses_reports=True) as made:
            lists = ListsTaken(made)
            there = AlreadyExists("there is one", status=409, reason="AlreadyExists")
            made.client.fail("create", there, resource="policyreports")
            await scanned(made, 3)
            assert lists.sizes[0] > 1

    asyncio.run(play())


@pytest.mark.parametrize("status", [405, 413])
def test_a_store_that_takes_no_lists_gets_its_reports_one_by_one(status: int):
    async def play():
        async with scene(needs("team"), *many(20), chooses_reports=True) as made:
            lists = ListsTaken(made, KubeError("no", status=status))
            await scanned(made, 20)
            assert len(lists.sizes) == 1
            await scanned_again(made)
            assert (len(lists.sizes) == 1) is (status == 405)

    asyncio.run(play())


def test_reports_that_could_not_be_written_together_are_tried_again():
    async def play():
        async with scene(needs("team"), *many(5), chooses_reports=True) as made:
            lists = ListsTaken(made, KubeError("away", status=503))
            scanning(made)
            await made.rest()
            assert (lists.sizes, made.stored(POLICY_REPORTS)) == ([5], [])
            lists._refusing = None
            for _ in range(4):
                await made.rest(5)
            assert len(made.stored(POLICY_REPORTS)) == 5

    asyncio.run(play())


def test_the_scan_reports_each_resource_by_its_uid_and_is_owned_by_it():
    async def play():
        async with scene(needs("team"), config_map("a", team="x"), config_map("b")) as made:
            scanning(made)
            await made.rest(5)
            first, second = made.stored(POLICY_REPORTS)
            assert rows(first) == [("ask-team", "needs-team", "pass")]
            assert rows(second) == [("ask-team", "needs-team", "fail")]
            uid = second["scope"]["uid"]
            assert second["metadata"]["name"] == uid
            assert second["metadata"]["ownerReferences"] == [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": uid}
            ]
            assert second["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "kyverno"}
            assert second["summary"] == {"pass": 0, "fail": 1, "warn": 0, "error": 0, "skip": 0}
            assert second["results"][0]["properties"] == {"process": "background scan"}

    asyncio.run(play())


def test_objects_of_no_namespace_have_reports_of_the_cluster():
    async def play():
        async with scene(needs("team", "Namespace"), namespace("dev")) as made:
            scanning(made)
            await made.rest(5)
            [report] = made.stored(CLUSTER_POLICY_REPORTS)
            assert report["kind"] == "ClusterPolicyReport"
            assert report["scope"]["name"] == "dev"

    asyncio.run(play())


def test_reports_are_of_the_api_that_operators_choose():
    async def play():
        objects = (needs("team"), needs("owner", "Namespace"), config_map("b"), namespace("dev"))
        async with scene(*objects, report_kinds=OPENREPORTS) as made:
            scanning(made)
            await admitted(made, made.stored(CONFIG_MAPS)[0])
            await made.rest(5)
            [report], [wide] = made.stored(OPEN_REPORTS), made.stored(CLUSTER_OPEN_REPORTS)
            assert (report["apiVersion"], report["kind"]) == ("openreports.io/v1alpha1", "Report")
            assert (wide["kind"], wide["scope"]["name"]) == ("ClusterReport", "dev")
            assert report["source"] == "kyverno"
            assert rows(report) == [("ask-team", "needs-team", "fail")]
            assert made.stored(POLICY_REPORTS) == made.stored(CLUSTER_POLICY_REPORTS) == []
            made.take(needs("team"))
            await made.rest(5)
            assert made.stored(OPEN_REPORTS) == []

    asyncio.run(play())


def test_a_failing_object_and_its_policy_get_one_event_each_from_the_scan_until_something_changes():
    async def play():
        async with scene(needs("team"), config_map("b")) as made:
            scanning(made)
            await made.rest(5)
            about = {event["involvedObject"]["kind"]: event for event in made.events}
            assert {event["reportingComponent"] for event in made.events} == {"kyverno-scan"}
            assert {event["reason"] for event in made.events} == {"PolicyViolation"}
            why = (
                "validation error: team is needed. rule needs-team failed at path /metadata/labels/"
            )
            assert {kind: event["message"] for kind, event in about.items()} == {
                "ClusterPolicy": f"ConfigMap shop/b: [needs-team] fail; {why}",
                "ConfigMap": f"policy ask-team/needs-team fail: {why}",
            }
            await made.rest(7200)
            assert len(made.events) == 2

    asyncio.run(play())


def test_a_changed_policy_judges_its_own_kinds_and_asks_no_other_policy():
    async def play():
        pods = needs("tier", "Pod")
        async with scene(needs("team"), needs("owner"), pods, config_map("a"), config_map("b")) as made:  # fmt: skip
            scan = scanning(made)
            await made.rest(5)
            assert scan.judged == 2
            before = made.stored(POLICY_REPORTS)
            await made.clock.advance(60)
            made.put(needs("owner", background=True, validationFailureAction="Enforce"))
            await made.rest(5)
            assert scan.judged == 4
            assert made.stored(POLICY_REPORTS) == before
            made.put(needs("tier", "Pod", background=True))
            await made.rest(5)
            assert scan.judged == 4

    asyncio.run(play())


def test_a_changed_object_is_judged_again_and_others_are_not():
    async def play():
        async with scene(needs("team"), config_map("a"), config_map("b")) as made:
            scan = scanning(made)
            await made.rest(5)
            made.put(config_map("a", team="x"))
            await made.rest(5)
            assert scan.judged == 3
            assert [rows(one)[0][2] for one in made.stored(POLICY_REPORTS)] == ["pass", "fail"]

    asyncio.run(play())


def test_an_object_whose_status_alone_changed_is_not_judged():
    async def play():
        async with scene(needs("team"), config_map("a")) as made:
            scan = scanning(made)
            await made.rest(5)
            made.put({**config_map("a"), "status": {"seen": "now"}})
            await made.rest(5)
            assert scan.judged == 1

    asyncio.run(play())


def test_everything_is_judged_again_after_the_interval_and_nothing_is_written_when_all_is_as_before():
    async def play():
        async with scene(needs("team"), config_map("a"), scan_interval=600.0) as made:
            scan = scanning(made)
            await made.rest(5)
            [before] = made.stored(POLICY_REPORTS)
            await made.rest(700)
            assert scan.judged == 2
            assert made.stored(POLICY_REPORTS) == [before]

    asyncio.run(play())


def test_a_namespace_with_other_labels_has_its_objects_judged_again():
    async def play():
        check = needs("team")
        check["spec"]["rules"][0]["match"]["any"][0]["resources"]["namespaceSelector"] = {"matchLabels": {"env": "prod"}}  # fmt: skip
        async with scene(check, namespace("shop", env="dev"), config_map("a")) as made:
            scanning(made)
            await made.rest(5)
            made.put(namespace("shop", env="dev"))
            await made.rest(5)
            assert made.stored(POLICY_REPORTS) == []
            made.put(namespace("shop", env="prod"))
            await made.rest(5)
            assert rows(made.stored(POLICY_REPORTS)[0]) == [("ask-team", "needs-team", "fail")]

    asyncio.run(play())


def test_rows_of_a_deleted_policy_go_and_empty_reports_with_them():
    async def play():
        async with scene(needs("team"), needs("owner"), config_map("a")) as made:
            scanning(made)
            await made.rest(5)
            made.take(needs("team"))
            await made.rest(5)
            [report] = made.stored(POLICY_REPORTS)
            assert rows(report) == [("ask-owner", "needs-owner", "fail")]
            made.take(needs("owner"))
            await made.rest(5)
            assert made.stored(POLICY_REPORTS) == []

    asyncio.run(play())


def test_rows_of_a_policy_that_went_while_nobody_led_go():
    async def play():
        async with scene(needs("team"), needs("owner"), config_map("a")) as made:
            scanning(made)
            await made.rest(5)
            leading_tasks, made.tasks[1:] = made.tasks[1:], []
            for task in leading_tasks:
                task.cancel()
            await asyncio.gather(*leading_tasks, return_exceptions=True)
            made.take(needs("team"))
            scanning(made)
            await made.rest(5)
            [report] = made.stored(POLICY_REPORTS)
            assert rows(report) == [("ask-owner", "needs-owner", "fail")]

    asyncio.run(play())


def test_rows_about_kinds_that_a_rule_left_go():
    async def play():
        async with scene(needs("team"), config_map("a")) as made:
            scanning(made)
            await made.rest(5)
            assert len(made.stored(POLICY_REPORTS)) == 1
            made.put(needs("team", "Pod"))
            await made.rest(5)
            assert made.stored(POLICY_REPORTS) == []

    asyncio.run(play())


def test_filtered_objects_and_policies_for_admission_only_are_not_scanned():
    async def play():
        only = needs("team", background=False)
        async with scene(needs("owner"), only, config_map("a", "kube-system"), config_map("b")) as made:  # fmt: skip
            scanning(made)
            await made.rest(5)
            [report] = made.stored(POLICY_REPORTS)
            assert rows(report) == [("ask-owner", "needs-owner", "fail")]
            assert report["scope"]["name"] == "b"

    asyncio.run(play())


def test_an_excepted_object_is_skipped_and_the_exception_named():
    async def play():
        exception = {
            "apiVersion": "kyverno.io/v2", "kind": "PolicyException",
            "metadata": {"name": "for-a", "namespace": "shop"},
            "spec": {"exceptions": [{"policyName": "ask-team", "ruleNames": ["needs-team"]}],
                     "match": matching("ConfigMap", names=["a"])},
        }  # fmt: skip
        async with scene(needs("team"), config_map("a")) as made:
            scanning(made)
            await made.rest(5)
            made.put(exception)
            await made.rest(5)
            [row] = made.stored(POLICY_REPORTS)[0]["results"]
            assert (row["result"], row["properties"]["exceptions"]) == ("skip", "for-a")
            assert {one["reason"] for one in made.events} == {"PolicyViolation", "PolicySkipped"}
            made.take(exception)
            await made.rest(5)
            assert rows(made.stored(POLICY_REPORTS)[0]) == [("ask-team", "needs-team", "fail")]

    asyncio.run(play())


def test_admission_reports_what_the_scan_cannot_see():
    async def play():
        only = needs("team", background=False)
        async with scene(only, needs("owner")) as made:
            stored = made.put(config_map("a"))
            await admitted(made, stored)
            await made.rest(5)
            [report] = made.stored(POLICY_REPORTS)
            assert rows(report) == [("ask-team", "needs-team", "fail")]
            assert report["results"][0]["properties"] == {"process": "admission review"}

    asyncio.run(play())


def told_about(made: Scene, **fields: Any) -> bool:
    fields = {"type": RuleType.VALIDATION, "message": "", **fields}
    return made.sink.follows([RuleResult(policy="ask-team", rule="needs-team", **fields)])


def test_the_sink_is_told_only_what_makes_an_event_or_a_row():
    async def play():
        async with scene(needs("team")) as made:
            for _ in range(2):
                assert not told_about(made, status=Status.PASS)
                assert not told_about(made, status=Status.SKIP)
                assert told_about(made, status=Status.FAIL)
                assert told_about(made, status=Status.ERROR)
                assert told_about(made, status=Status.SKIP, exceptions=("shop/for-a",))
            mutation = {"type": RuleType.MUTATION, "status": Status.PASS}
            assert told_about(made, **mutation, message="mutated ConfigMap/a in namespace shop")
            assert not told_about(made, **mutation, message="no patches applied")
            made.put(needs("team", background=False))
            assert told_about(made, status=Status.PASS)
        async with scene(needs("team"), background_scan=False) as made:
            assert told_about(made, status=Status.PASS)
        async with scene(needs("team")) as made:
            data = {"generateSuccessEvents": "true"}
            made.cache.configuration = read_configuration({"data": data})
            assert told_about(made, status=Status.PASS)

    asyncio.run(play())


def test_rows_from_admission_and_scan_stand_together():
    async def play():
        only = needs("team", background=False)
        async with scene(only, needs("owner")) as made:
            scanning(made)
            stored = made.put(config_map("a"))
            await admitted(made, stored)
            await made.rest(10)
            [report] = made.stored(POLICY_REPORTS)
            assert [one[0] for one in rows(report)] == ["ask-owner", "ask-team"]

    asyncio.run(play())


def test_an_object_that_never_came_to_be_has_no_report():
    async def play():
        async with scene(needs("team", background=False)) as made:
            refused = config_map("a")
            refused["metadata"]["uid"] = "never"
            await admitted(made, refused)
            await made.rest(60)
            made.put(config_map("a"))
            await made.rest(60)
            assert made.stored(POLICY_REPORTS) == []

    asyncio.run(play())


def test_rows_about_what_may_not_be_read_are_given_up():
    async def play():
        async with scene(needs("team", background=False)) as made:
            made.client.fail(
                "get", Forbidden("you may not", status=403), resource="configmaps", times=99
            )
            await admitted(made, made.put(config_map("a")))
            await made.rest(60)
            asked = [one for one in made.client.calls if one.verb == "get"]
            await made.rest(3600)
            assert [one for one in made.client.calls if one.verb == "get"] == asked
            assert made.stored(POLICY_REPORTS) == []

    asyncio.run(play())


def test_a_blocked_request_has_an_event_on_the_policy_and_no_report():
    async def play():
        enforced = needs("team", background=False, validationFailureAction="Enforce")
        async with scene(enforced) as made:
            await admitted(made, config_map("a"), allowed=False, user=UserInfo(username="chip"))
            await made.rest(60)
            [event] = made.events
            assert event["involvedObject"]["kind"] == "ClusterPolicy"
            assert event["action"] == "Resource Blocked"
            marks = event["metadata"]["annotations"]
            assert marks["kpolicy.io/user"] == "chip"
            assert marks["kpolicy.io/block"].startswith("kb1.")
            assert event["message"].startswith(
                "ConfigMap shop/a: [needs-team] fail (blocked); validation error: team is needed."
            )
            assert made.stored(POLICY_REPORTS) == []

    asyncio.run(play())


def test_events_for_which_there_is_no_room_are_counted_and_not_made_unless_a_policy_waits_for_them():
    async def denied(made: Scene, count: int) -> list[str]:
        recorder = made.context.recorder
        recorder._most, lost = 3, []
        recorder._on_drop = lost.append
        for number in range(count):
            obj = config_map(f"c{number}")
            await admitted(made, obj, allowed=False, user=UserInfo(username="chip"))
        return lost

    async def play():
        enforced = needs("team", background=False, validationFailureAction="Enforce")
        async with scene(enforced) as made:
            assert await denied(made, 8) == ["PolicyViolation"] * 5
            assert made.context.recorder.dropped == 5
            await made.rest(60)
            assert len(made.events) == 3
        async with scene(enforced, omitted_events=frozenset({"PolicyViolation"})) as made:
            made.context.recorder._most = 0
            assert await denied(made, 2) == []
        watching = needs("owner", "Event", background=False)
        async with scene(enforced, watching) as made:
            assert await denied(made, 8) == []
            await made.rest(60)
            assert len(made.events) == 8

    asyncio.run(play())


def test_results_about_events_make_no_events():
    async def play():
        about = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "shop"},
        }
        async with scene(needs("team", "Event")) as made:
            await admitted(made, made.put(about))
            await made.rest(60)
            assert len(made.events) == 1
            assert made.stored(POLICY_REPORTS) == []

    asyncio.run(play())


def test_what_a_mutation_changed_at_admission_stays_reported_when_the_scan_finds_nothing_to_change():
    async def play():
        change = {
            "name": "add", "match": matching("ConfigMap"),
            "mutate": {"patchStrategicMerge": {"metadata": {"labels": {"+(tier)": "tin"}}}},
        }  # fmt: skip
        async with scene(cluster_policy("add-tier", change)) as made:
            scanning(made)
            sent = config_map("a")
            await admitted(made, sent)
            made.put(config_map("a", tier="tin"))
            await made.rest(10)
            [report] = made.stored(POLICY_REPORTS)
            assert rows(report) == [("add-tier", "add", "pass")]
            assert report["results"][0]["message"] == "mutated ConfigMap/a in namespace shop"

    asyncio.run(play())


def test_a_kind_that_comes_to_the_server_later_is_scanned_then():
    async def play():
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "shop"}}  # fmt: skip
        async with scene(needs("team", "Thing")) as made:
            scanning(made)
            await made.rest(5)
            made.put(thing)
            await made.cache.discovery.refresh()
            await made.rest(70)
            assert rows(made.stored(POLICY_REPORTS)[0]) == [("ask-team", "needs-team", "fail")]

    asyncio.run(play())


def test_the_scan_asks_the_match_conditions_that_the_api_server_tests_of_requests():
    def only(expression: str, label: str) -> dict[str, Any]:
        condition = {"name": "c", "expression": expression}
        return needs(label, webhookConfiguration={"matchConditions": [condition]})

    async def play():
        by_name = only("object.metadata.name == 'a'", "team")
        by_user = only("'system:masters' in request.userInfo.groups", "owner")
        async with scene(by_name, by_user, config_map("a"), config_map("b")) as made:
            scanning(made)
            await made.rest(5)
            [report] = made.stored(POLICY_REPORTS)
            assert report["scope"]["name"] == "a"
            assert rows(report) == [("ask-team", "needs-team", "fail")]

    asyncio.run(play())
