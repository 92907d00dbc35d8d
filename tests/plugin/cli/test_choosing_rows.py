"""Which rows a list shows and how: by fields, by owner, in chunks, as watch events; names that nothing has."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube.kinds import CONFIG_MAPS, POLICY_REPORTS
from kubectl_kpolicy import entry
from kubectl_kpolicy.actions.screens import listing_named
from kubectl_kpolicy.cli.selection import ListRequest, is_named, read_fields, selected
from kubectl_kpolicy.cli.watching import changes
from kubectl_kpolicy.output.diagnostics import ExitCode
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.output.rows import Row
from kubectl_kpolicy.session.cluster import ClusterFlags, seconds_of
from tests.plugin.grants.staging import Stage, play

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ADMIN: Any = {"groups": ("system:masters",)}


@pytest.fixture
def on_stage(tmp_path, capsys, monkeypatch):
    def run(act: Callable[[Stage], Awaitable[None]]) -> None:
        play(tmp_path, capsys, monkeypatch, act)

    return run


def report(name: str, kind: str, api: str, uid: str, **result: Any) -> dict[str, Any]:
    return {
        "apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport",
        "metadata": {"name": name, "namespace": "default"},
        "scope": {"apiVersion": api, "kind": kind, "name": name, "namespace": "default", "uid": uid},
        "results": [{"policy": "p", "rule": "r", "result": "fail", "severity": "low", **result}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kept"),
    [("metadata.name=web", True), ("metadata.name==web", True), ("metadata.name!=web", False), ("kind=Pod,metadata.name=web", True),
     ("kind=Pod,metadata.name=x", False), ("spec.nothing=", True), ("spec.nothing!=", False), ("", True),
     ("spec.hostNetwork=false", True), ("spec.hostNetwork=", False), ("spec.priority=0", True), ("kind=Pod, metadata.name = web", True)],
)  # fmt: skip
def test_fields_choose_as_the_api_server_would(text: str, kept: bool) -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"hostNetwork": False, "priority": 0},
    }
    assert all(one.holds(pod) for one in read_fields(text)) is kept


@pytest.mark.parametrize(
    ("where", "selector", "kept"),
    [
        ("", "app=web", ["a"]),
        ("ns=x or ns=y", "app=web", ["a"]),
        ("ns=y", "", ["b"]),
        ("", "app in (web, api)", ["a", "b"]),
        ("", 'app!="', ["a", "b"]),
    ],
)
def test_rows_fit_the_filter_and_the_selector(where: str, selector: str, kept: list[str]) -> None:
    listing = listing_named("violations")
    rows = [
        Row(name, {"namespace": place, "name": name}, {"metadata": {"labels": {"app": app}}})
        for name, place, app in (("a", "x", "web"), ("b", "y", "api"))
    ]
    flags = ListRequest(connection=ClusterFlags(), where=where, selector=selector)

    found = selected(flags, rows, listing, datetime(2026, 3, 2, tzinfo=UTC), lambda _: True)
    assert [row.key for row in found] == kept


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10), ("1m30s", 90), ("500ms", 0.5), ("7", 7), ("0", None), ("1h", 3600)],
)
def test_a_time_out_is_read_as_kubectl_reads_it(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["soon", "2d", "-1s", "", "²"])
def test_what_kubectl_takes_for_no_time_out_is_none(text: str) -> None:
    with pytest.raises(Misuse, match="as a length of time"):
        seconds_of(text)


@pytest.mark.parametrize("text", ["metadata.name", "=x", "!=x"])
def test_what_is_no_selection_of_a_field_is_said(text: str) -> None:
    with pytest.raises(Misuse, match="invalid field selector"):
        read_fields(text)


@pytest.mark.parametrize("name", ["deploy/web", "deployments/web", "Deployment/web", "deployment.apps/web"])  # fmt: skip
def test_a_kind_may_be_written_as_kubectl_reads_it(name: str) -> None:
    cells: dict[str, Any] = {"kind": "Deployment", "name": "web", "resource": "Deployment/web"}
    row = Row("k", cells, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}})  # fmt: skip
    assert is_named(row, [name])
    assert not is_named(row, [name.replace("web", "other")])


def test_changes_are_told_in_the_words_of_a_watch() -> None:
    before = {"a": Row("a", {"x": 1}), "b": Row("b", {"x": 1}), "c": Row("c", {"x": 1})}
    found = changes(before, [Row("a", {"x": 1}), Row("b", {"x": 2}), Row("d", {"x": 1})])

    assert [(event, row.key) for event, row in found] == [("MODIFIED", "b"), ("ADDED", "d"), ("DELETED", "c")]  # fmt: skip


def test_results_belong_to_the_outermost_owner(on_stage):
    async def act(stage: Stage) -> None:
        ref: dict[str, Any] = {}
        for name in ("web", "web-1", "web-1-a"):
            metadata = {"name": name, "namespace": "default", "labels": {"tier": "front"}, **({"ownerReferences": [ref]} if ref else {})}  # fmt: skip
            made = await stage.admin.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})  # fmt: skip
            ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": made["metadata"]["uid"], "controller": True}  # fmt: skip
        await stage.admin.create(POLICY_REPORTS, report("web-1-a", "ConfigMap", "v1", ref["uid"]))
        await stage.admin.create(POLICY_REPORTS, report("loose", "Pod", "v1", "other"))

        said = await stage.run(
            "root", "violations", "--owner", "configmap/web", "-o", "json", **ADMIN
        )
        assert said.code == 0, said.err
        assert [one["resource"]["name"] for one in json.loads(said.out)["items"]] == ["web-1-a"]
        assert json.loads(said.out)["items"][0]["owner"] == "ConfigMap/web"
        labelled = await stage.run("root", "violations", "-l", "tier=front", "-o", "name", **ADMIN)
        assert labelled.out.split() == ["violation.kpolicy.io/p-r-web-1-a"], labelled.err
        shown = await stage.run("root", "violations", "--show-labels", **ADMIN)
        assert "tier=front" in shown.out
        counted = await stage.run(
            "root", "violations", "--group-by", "owner", "--no-headers", **ADMIN
        )
        assert sorted(line.split()[0] for line in counted.out.splitlines()) == ["ConfigMap/web", "Pod/loose"]  # fmt: skip

    on_stage(act)


def test_chunks_fields_and_names_change_what_is_read_and_not_what_is_said(on_stage):
    async def act(stage: Stage) -> None:
        for number in range(5):
            await stage.admin.create(POLICY_REPORTS, report(f"p{number}", "Pod", "v1", str(number), timestamp={"seconds": 1_700_000_000 + number, "nanos": 0}))  # fmt: skip
        whole = await stage.run("root", "violations", "-o", "json", **ADMIN)
        assert len(json.loads(whole.out)["items"]) == 5
        for size in ("1", "2", "0"):
            assert (await stage.run("root", "violations", "-o", "json", "--chunk-size", size, **ADMIN)).out == whole.out  # fmt: skip
        one = await stage.run("root", "violations", "--field-selector", "resource.name=p3", "-o", "json", **ADMIN)  # fmt: skip
        [item] = json.loads(one.out)["items"]
        assert item["timestamp"] == datetime.fromtimestamp(1_700_000_003, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # fmt: skip
        assert (await stage.run("root", "violations", "--chunk-size", "x", **ADMIN)).code == ExitCode.USAGE  # fmt: skip

    on_stage(act)


def test_a_name_that_nothing_has_is_gone_and_the_others_are_shown(on_stage):
    async def act(stage: Stage) -> None:
        policy = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "there"}, "spec": {"rules": []}}  # fmt: skip
        await stage.create("kyverno.io/v1", "clusterpolicies", policy)
        said = await stage.run("root", "policies", "list", "there", "absent", "-o", "name", **ADMIN)
        assert (said.code, said.out) == (ExitCode.GONE, "clusterpolicy.kyverno.io/there\n")
        assert "there is no policy called `absent`" in said.err
        printed = await stage.run("root", "policies", "describe", said.out.strip(), **ADMIN)
        assert (printed.code, printed.out.split()[:2]) == (0, ["Name:", "there"])

    on_stage(act)


def test_an_empty_list_is_no_failure_and_writes_nothing_to_standard_output(on_stage):
    async def act(stage: Stage) -> None:
        said = await stage.run("root", "violations", **ADMIN)
        assert (said.code, said.out, said.err) == (0, "", "No resources found in default namespace.\n")  # fmt: skip
        empty = await stage.run("root", "violations", "-o", "json", **ADMIN)
        assert (json.loads(empty.out)["items"], empty.err) == ([], "")

    on_stage(act)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("violations", "--where", "sev>>high"), "high"),
        (("violations", "--sort-by", "nothing"), "there is no column `nothing`"),
        (("policies", "--group-by", "nothing"), "there is no column `nothing`"),
        (("grant", "list", "--field-selector", "kind"), "invalid field selector"),
        (("violations", "--severity", "high,awful"), "there is no severity `awful`"),
        (("violations", "--result", "failed"), "there is no result `failed`"),
        (("violations", "--since", "yesterday"), "yesterday"),
        (("violations", "--request-timeout", "soon"), "cannot read `soon` as a length of time"),
        (("grant", "request"), "say for which policy"),
        (("tui", "--serve", ":http"), "cannot read `:http` as an address"),
    ],
)
def test_what_no_rows_could_have_is_refused_before_a_cluster_is_asked(
    words: tuple[str, ...], told: str, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)

    assert entry.main([*words]) == ExitCode.USAGE
    assert told in capsys.readouterr().err


def test_an_address_is_enough_where_no_kubeconfig_is(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)

    code = entry.main(["policies", "-s", "https://127.0.0.1:1", "--token", "t"])
    assert code == ExitCode.UNREACHABLE
    assert "`https://127.0.0.1:1` cannot be reached" in capsys.readouterr().err
