"""`y` on a violation: the object as it is in the cluster, with owners, results and what each rule wants and got."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubectl_kpolicy.cluster.marking import marked, objections, shown_object, trees
from kubectl_kpolicy.cluster.sources import LiveSource
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient
from tests.plugin.scene import NOW, meta, policy, report, result, world

from .stage import LARGE, Stage, console, on_stage, window_of

if TYPE_CHECKING:
    from kubectl_kpolicy.cluster.cache import ClusterCache

NO_HOST = (
    "validation error: Host namespaces are not shared. rule host-pid failed at path /spec/hostPID/"
)
NON_ROOT = "validation error: no root. rule autogen-non-root failed at path /spec/template/spec/containers/0/securityContext/"


def rule(name: str, **validate: Any) -> dict[str, Any]:
    made = policy(f"policy-{name}", "Audit", "high", [name])
    made["spec"]["rules"][0]["validate"] = validate
    return made


def pod(**spec: Any) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta("web", "payments"), "managedFields": [{}], "ownerReferences": [owner]},
        "spec": {"hostPID": True, "containers": [{"name": "a", "image": "a:1"}], **spec},
    }


def replica_set() -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {**meta("web-1", "payments"), "ownerReferences": [owner]},
    }


def there() -> ClusterCache:
    found = (
        result("policy-host-pid", "host-pid", "fail", "high", NO_HOST),
        result("policy-team", "team", "pass", "low", "fine"),
    )
    wanted = {"spec": {"=(hostPID)": False}}
    return world(
        {
            "reports": [report("Pod", "web", "payments", *found)],
            "clusterpolicies": [rule("host-pid", pattern=wanted)],
        }
    )


class Live(Stage, LiveSource):
    def __init__(self, *objects: dict[str, Any]) -> None:
        super().__init__(there())
        self.client: Any = FakeClient(*objects, clock=ManualClock(NOW))


def marks(obj: dict[str, Any], message: str, name: str, **validate: Any) -> dict[str, str]:
    """Return the objections to an object by the line that they stand at."""
    own = name.removeprefix("autogen-")
    found = report(
        obj["kind"], "web", "payments", result(f"policy-{own}", name, "fail", "high", message)
    )
    cache = world({"reports": [found], "clusterpolicies": [rule(own, **validate)]})
    shown = shown_object(obj)
    return {line.strip(): mark for line, mark in marked(shown, objections(shown, cache)) if mark}


def test_the_object_stands_below_its_owners_and_policies_with_the_failing_path_marked() -> None:
    async def look(app, _pilot) -> None:
        shown = window_of(app)
        assert "# └ Deployment/web" in shown
        assert "#   └ ReplicaSet/web-1" in shown
        assert "#     └ Pod/web" in shown
        assert "# └ policy-host-pid" in shown
        assert "✓ pass team" in shown
        assert "hostPID: true  # <- policy-host-pid/host-pid: want false, got true" in shown
        assert "managedFields" not in shown

    app = console(source=Live(pod(), replica_set()))
    on_stage(look, app, keys=("y",), size=LARGE)


def test_an_object_that_is_gone_or_not_recorded_is_said_to_be_so() -> None:
    def shown(source: Stage) -> str:
        seen: list[str] = []

        async def look(app, _pilot) -> None:
            seen.append(window_of(app))

        on_stage(look, console(source=source), keys=("y",), size=LARGE)
        return seen[0]

    assert "not found" in shown(Live()).lower()
    assert "a recording does not hold the object" in shown(Stage(there()))


def test_what_is_missing_is_marked_where_it_would_stand_and_rules_for_controllers_are_understood() -> (
    None
):
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta("web", "payments"),
        "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}},
    }
    pattern = {"spec": {"containers": [{"securityContext": {"runAsNonRoot": True}}]}}

    found = marks(deployment, NON_ROOT, "autogen-non-root", pattern=pattern)

    assert found == {
        "- name: a": '<- policy-non-root/autogen-non-root: want securityContext: {"runAsNonRoot":true}, got nothing'
    }


def test_conditions_that_deny_and_expressions_mark_the_paths_that_they_look_at() -> None:
    condition = {
        "key": "{{ request.object.spec.hostPID || `false` }}",
        "operator": "Equals",
        "value": True,
    }
    denied = marks(pod(), "no", "deny", deny={"conditions": {"any": [condition]}})
    expressions = [{"expression": "object.spec.hostPID == false", "message": "no"}]
    said = marks(pod(), "no", "cel", cel={"expressions": expressions})

    assert denied == {"hostPID: true": "<- policy-deny/deny: want not Equals true, got true"}
    assert said == {
        "hostPID: true": "<- policy-cel/cel: want object.spec.hostPID == false, got true"
    }


def test_values_of_a_secret_are_never_shown() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta("s", "a"),
        "data": {"key": "c2VjcmV0"},
    }
    secret["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": "c2VjcmV0"
    }

    shown = "\n".join(line for line, _ in marked(shown_object(secret), ()))

    assert "c2VjcmV0" not in shown
    assert "(hidden, 8 characters)" in shown


CODE = "7GQ2-K9XD-PM4T-WZ81-VN30"


def test_a_code_that_stays_in_an_object_is_never_shown() -> None:
    used = pod()
    used["metadata"]["annotations"] = {"kpolicy.io/code": f"{CODE}, {CODE.lower()}", "team": "a"}
    there = console(source=Live(used, replica_set()))

    async def look(app, _pilot) -> None:
        shown = window_of(app)
        assert "kpolicy.io/code: (hidden)" in shown
        assert "team: a" in shown
        assert CODE[:9] not in shown.upper()

    on_stage(look, there, keys=("y",), size=LARGE)


def test_no_objection_repeats_what_is_hidden() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta("web", "payments")}
    secret["metadata"]["annotations"] = {"kpolicy.io/code": CODE}
    secret["data"] = {"key": "c2VjcmV0"}
    for path, hidden in (("/data/key/", "c2VjcmV0"), ("/metadata/annotations/", CODE)):
        message = f"validation error: no. rule r failed at path {path}"
        [(_, mark)] = marks(secret, message, "r", pattern={"data": {"key": "?"}}).items()
        assert "got" in mark
        assert hidden not in mark


def test_trees_tell_nothing_of_what_there_is_not() -> None:
    assert list(trees(["Pod/web"], ())) == []
