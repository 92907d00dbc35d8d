"""`create`: the drafts are what upstream's tools read, and a wrong flag says what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from controllers.kube.accounts import CONTROLLERS
from controllers.manifests import rbac
from engine.lang.yaml import load
from engine.parse import parse_exception
from kubectl_kpolicy import entry

if TYPE_CHECKING:
    from pathlib import Path

EXCEPTION = [
    "create",
    "exception",
    "legacy",
    "-n",
    "shop",
    "--policy-rules",
    "require-labels,check-team,autogen-check-team",
]


def drafted(capsys, *words: str) -> dict:
    assert entry.main(list(words)) == 0, capsys.readouterr().err
    return load(capsys.readouterr().out)


def test_an_exception_names_rules_and_resources(capsys) -> None:
    found = drafted(
        capsys,
        *EXCEPTION,
        "--any",
        "kind=Pod,kind=Deployment,name=legacy-*",
        "--all",
        "namespace=shop,operation=CREATE",
    )

    assert found == {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "legacy", "namespace": "shop"},
        "spec": {
            "background": True,
            "match": {
                "any": [{"resources": {"kinds": ["Pod", "Deployment"], "names": ["legacy-*"]}}],
                "all": [{"resources": {"namespaces": ["shop"], "operations": ["CREATE"]}}],
            },
            "exceptions": [
                {"policyName": "require-labels", "ruleNames": ["check-team", "autogen-check-team"]}
            ],
        },
    }


def test_a_drafted_exception_is_accepted_by_the_engine(capsys) -> None:
    from engine.errors import NOWHERE

    found = parse_exception(drafted(capsys, *EXCEPTION, "--any", "kind=Pod"), at=NOWHERE)

    assert found.key == "shop/legacy"


@pytest.mark.parametrize(
    ("flag", "expected"), [("--background=false", False), ("-b", True), ("--background=TRUE", True)]
)
def test_background_is_a_truth_value(capsys, flag: str, expected: bool) -> None:
    assert drafted(capsys, *EXCEPTION, "--any", "kind=Pod", flag)["spec"]["background"] is expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (EXCEPTION, "needs resources"),
        ([*EXCEPTION, "--any", "knd=Pod"], "`knd=Pod` is no resource filter"),
        ([*EXCEPTION, "--any", "kind="], "`kind=` is no resource filter"),
        ([*EXCEPTION[:-1], "require-labels", "--any", "kind=Pod"], "`require-labels` is no policy with rules"),
        (["create", "test", "--pass", "a,b"], "`a,b` is no expected result"),
        (["create", "test", "--pass", "a,b,c,d,e,f"], "is no expected result"),
        (["create", "values", "-g", "novalue"], "`novalue` is no assignment"),
        (["create", "values", "--rule", "k=v"], "names no policy and rule"),
        (["create", "cluster-role", "x", "-r", "pods", "--verbs", "get", "--controllers", "report-controller"],
            "unknown controller `report-controller`"),
        (["create", "cluster-role", "x", "-r", "pods", "--verbs", "get,"], "`get,` names no verb between commas"),
        (["create", "cluster-role", "x", "-r", "", "--verbs", "get"], "`` names no resource between commas"),
    ],
)  # fmt: skip
def test_a_wrong_text_is_one_clear_error(capsys, words: list[str], message: str) -> None:
    assert entry.main(words) == 1

    printed, err = capsys.readouterr()
    assert printed == ""
    assert message in err
    assert "\nhelp: " in err


def test_a_test_file_lists_what_is_expected(capsys) -> None:
    found = drafted(capsys, "create", "test", "-p", "p.yaml", "-r", "a.yaml", "-r", "b.yaml", "-f", "v.yaml",
        "--pass", "labels,team,web,shop,Pod", "--fail", "labels,team,db")  # fmt: skip

    assert found["apiVersion"] == "cli.kyverno.io/v1alpha1"
    assert (found["policies"], found["resources"], found["variables"]) == (
        ["p.yaml"],
        ["a.yaml", "b.yaml"],
        "v.yaml",
    )
    assert found["results"] == [
        {
            "policy": "labels",
            "rule": "team",
            "kind": "Pod",
            "resources": ["shop/web"],
            "result": "pass",
        },
        {"policy": "labels", "rule": "team", "resources": ["db"], "result": "fail"},
    ]


def test_a_values_file_gathers_values_by_policy(capsys) -> None:
    found = drafted(capsys, "create", "values", "-g", "request.mode=dev", "-n", "prod,env=prod,tier=a=b",
        "--rule", "labels,team,x=1", "--resource", "labels,web,y=yes")  # fmt: skip

    assert found["globalValues"] == {"request.mode": "dev"}
    assert found["namespaceSelector"] == [
        {"name": "prod", "labels": {"env": "prod", "tier": "a=b"}}
    ]
    assert found["policies"] == [
        {
            "name": "labels",
            "resources": [{"name": "web", "values": {"y": "yes"}}],
            "rules": [{"name": "team", "values": {"x": "1"}}],
        }
    ]


def test_a_user_info_file_names_user_groups_and_roles(capsys) -> None:
    found = drafted(
        capsys,
        "create",
        "user-info",
        "-u",
        "ann",
        "-g",
        "developers",
        "-r",
        "shop:editor",
        "-c",
        "view",
    )

    assert found["userInfo"] == {"username": "ann", "groups": ["developers"]}
    assert (found["roles"], found["clusterRoles"]) == (["shop:editor"], ["view"])


def test_a_cluster_role_adds_rights_to_the_controllers_it_names(capsys) -> None:
    words = ["-g", "apps,", "-r", "deployments,nodes", "-r", "pods", "--verbs", "list,watch"]
    both = "reports-controller,cleanup-controller"

    found = drafted(capsys, "create", "cluster-role", "scan", *words, "--controllers", both)

    assert found["metadata"] == {
        "name": "scan",
        "labels": {
            "rbac.kyverno.io/aggregate-to-reports-controller": "true",
            "rbac.kyverno.io/aggregate-to-cleanup-controller": "true",
        },
    }
    assert found["rules"] == [
        {
            "apiGroups": ["apps", ""],
            "resources": ["deployments", "nodes", "pods"],
            "verbs": ["list", "watch"],
        }
    ]


def test_a_cluster_role_is_collected_by_the_role_of_each_controller_it_can_name(capsys) -> None:
    collected = {
        label
        for made in rbac.roles()
        for selector in made.get("aggregationRule", {}).get("clusterRoleSelectors", ())
        for label in selector["matchLabels"]
    }
    everybody = ",".join(CONTROLLERS)

    words = ["-r", "pods", "--verbs", "get", "--controllers", everybody]

    found = drafted(capsys, "create", "cluster-role", "x", *words)

    assert len(found["metadata"]["labels"]) == len(CONTROLLERS)
    assert set(found["metadata"]["labels"]) <= collected


def test_a_draft_can_be_written_to_a_file(capsys, tmp_path: Path) -> None:
    place = tmp_path / "user.yaml"

    assert entry.main(["create", "user-info", "-u", "ann", "-o", str(place)]) == 0
    assert load(place.read_text())["kind"] == "UserInfo"
    assert capsys.readouterr().out == ""


def test_a_place_that_cannot_be_written_is_an_error(capsys, tmp_path: Path) -> None:
    assert entry.main(["create", "user-info", "-o", str(tmp_path / "no" / "file")]) == 1
    assert "no such file or directory" in capsys.readouterr().err
