"""Which pods the standards forbid, at which level and version, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import PolicyError
from engine.model import Outcome, Status
from engine.podsecurity import compile_pod_security

GOOD: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
    "capabilities": {"drop": ["ALL"]},
}


def container(name: str = "c", **security: Any) -> dict[str, Any]:
    return {"name": name, "image": f"r.io/{name}:1", "securityContext": {**GOOD, **security}}


def pod(*containers: dict[str, Any], annotations: Any = None, **spec: Any) -> dict[str, Any]:
    spec = {"containers": list(containers or [container()]), **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "o", "annotations": annotations},
        "spec": spec,
    }


def ask(obj: dict[str, Any], level: str = "restricted", version: str = "latest") -> Outcome:
    return compile_pod_security({"level": level, "version": version})(obj, "r")


def groups(obj: dict[str, Any], level: str = "restricted", version: str = "latest") -> str:
    """Return the part of the message after the standard, empty when the object passes."""
    return ask(obj, level, version).message.partition('": ')[2]


def one(reason: str, *errors: str) -> str:
    return f"(Forbidden reason: {reason}, field error list: [{', '.join(errors)}])"


SECURITY = "spec.containers[0].securityContext"


@pytest.mark.parametrize(
    ("obj", "level", "expected"),
    [
        (pod(hostPID=True), "baseline", one("host namespaces", "spec.hostPID is forbidden, forbidden values found: true")),
        (pod(hostIPC=True), "baseline", one("host namespaces", "spec.hostIPC is forbidden, forbidden values found: true")),
        (pod(volumes=[{"hostPath": {}}]), "baseline", one("hostPath volumes", "spec.volumes[0].hostPath: Forbidden")),
        (pod(volumes=[{"name": "v"}, {"gitRepo": {}}]), "restricted", one("restricted volume types", "spec.volumes[0].unknown: Forbidden", "spec.volumes[1].gitRepo: Forbidden")),
        (pod(container(procMount="")), "baseline", one("procMount", f"{SECURITY}.procMount: Forbidden")),
        (pod(container(windowsOptions={"hostProcess": True}), securityContext={"windowsOptions": {"hostProcess": True}}), "baseline", one("hostProcess", "spec.securityContext.windowsOptions.hostProcess is forbidden, forbidden values found: true", f"{SECURITY}.windowsOptions.hostProcess is forbidden, forbidden values found: true")),
        (pod(container(runAsUser=0), securityContext={"runAsUser": 0}), "restricted", one("runAsUser=0", "spec.securityContext.runAsUser is forbidden, forbidden values found: 0", f"{SECURITY}.runAsUser is forbidden, forbidden values found: 0")),
        (pod(container(runAsNonRoot=False)), "restricted", one("runAsNonRoot != true", f"{SECURITY}.runAsNonRoot is forbidden, forbidden values found: false")),
        (pod(container(runAsNonRoot=None), securityContext={"runAsNonRoot": False}), "restricted", one("runAsNonRoot != true", "spec.securityContext.runAsNonRoot is forbidden, forbidden values found: false")),
        (pod(container(capabilities={"drop": ["NET_RAW", "all"]})), "restricted", one("unrestricted capabilities", f"{SECURITY}.capabilities.drop: Required value")),
        (pod(container("a", capabilities={"drop": ["ALL"], "add": ["CHOWN"]}), container("b", capabilities=None)), "restricted", one("unrestricted capabilities", "spec.containers[1].securityContext.capabilities.drop: Required value", f"{SECURITY}.capabilities.add is forbidden, forbidden values found: [CHOWN]")),
        (pod(securityContext={"appArmorProfile": {"type": "Unconfined"}}), "baseline", one("forbidden AppArmor profile", "spec.securityContext.appArmorProfile.type is forbidden, forbidden values found: Unconfined")),
        (pod(container(appArmorProfile={})), "baseline", one("forbidden AppArmor profile", f"{SECURITY}.appArmorProfile.type: Forbidden")),
        (pod(container(seccompProfile={"type": ""})), "baseline", one("seccompProfile", f"{SECURITY}.seccompProfile.type: Forbidden")),
    ],
)  # fmt: skip
def test_a_violation_is_told_in_kyvernos_words(
    obj: dict[str, Any], level: str, expected: str
) -> None:
    assert groups(obj, level) == expected
    assert ask(obj, level).status is Status.FAIL


@pytest.mark.parametrize(
    "obj",
    [
        pod(),
        pod(volumes=[{kind: {}} for kind in ("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret")]),
        pod(container(capabilities={"drop": ["NET_RAW", "ALL"], "add": ["NET_BIND_SERVICE"]})),
        pod(container(seccompProfile={"type": "Localhost"}, appArmorProfile={"type": "Localhost"})),
        pod(container(runAsNonRoot=None, seccompProfile=None), securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}}),
        pod(container(procMount="Default", privileged=False, runAsUser=1, seLinuxOptions={"type": "container_t"})),
        pod(container(), hostNetwork=False, hostPID=None, securityContext=None, initContainers=None, volumes=None),
        pod(annotations={"container.apparmor.security.beta.kubernetes.io/c": "localhost/x", "container.apparmor.security.beta.kubernetes.io/d": "", "other": "unconfined"}),
        pod({**container(), "ports": [{"containerPort": 80, "hostPort": 0}], "livenessProbe": {"httpGet": {"host": "", "port": 80}, "tcpSocket": None}}),
    ],
)  # fmt: skip
def test_a_pod_that_complies_passes_at_every_level(obj: dict[str, Any]) -> None:
    for level in ("privileged", "baseline", "restricted"):
        assert ask(obj, level) == Outcome(Status.PASS, "Validation rule 'r' passed.")


@pytest.mark.parametrize("place", ["initContainers", "containers", "ephemeralContainers"])
@pytest.mark.parametrize(
    "security",
    [
        {"privileged": True},
        {"allowPrivilegeEscalation": True},
        {"allowPrivilegeEscalation": None},
        {"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}},
        {"capabilities": {}},
        {"procMount": "Unmasked"},
        {"runAsNonRoot": False},
        {"runAsNonRoot": None},
        {"runAsUser": 0},
        {"seccompProfile": {"type": "Unconfined"}},
        {"seccompProfile": None},
        {"appArmorProfile": {"type": "Unconfined"}},
        {"seLinuxOptions": {"type": "spc_t"}},
        {"seLinuxOptions": {"user": "u"}},
        {"seLinuxOptions": {"role": "r"}},
        {"windowsOptions": {"hostProcess": True}},
    ],
)
def test_no_list_of_containers_is_overlooked(place: str, security: dict[str, Any]) -> None:
    obj = pod(container("first"), **{place: [container("first"), container("second", **security)]})

    found = groups(obj)

    assert f"spec.{place}[1].securityContext." in found
    assert "[0]" not in found


@pytest.mark.parametrize(
    "extra",
    [
        {"ports": [{"hostPort": 0}, {"hostPort": 22}]},
        {"readinessProbe": {"tcpSocket": {"host": "10.0.0.1"}}},
        {"startupProbe": {"httpGet": {"host": "10.0.0.1"}}},
        {"lifecycle": {"postStart": {"httpGet": {"host": "10.0.0.1"}}}},
        {"lifecycle": {"preStop": {"tcpSocket": {"host": "10.0.0.1"}}}},
    ],
)
@pytest.mark.parametrize("place", ["initContainers", "ephemeralContainers"])
def test_ports_probes_and_hooks_of_every_list_count(place: str, extra: dict[str, Any]) -> None:
    assert ask(pod(**{place: [{**container("x"), **extra}]}), "baseline").status is Status.FAIL


def test_several_apparmor_profiles_are_spoken_of_in_the_plural() -> None:
    prefix = "container.apparmor.security.beta.kubernetes.io/"
    two = pod(annotations={f"{prefix}b": "unconfined", f"{prefix}a": "unconfined"})
    same = pod(
        container("a", appArmorProfile={"type": "Unconfined"}),
        container("b", appArmorProfile={"type": "Unconfined"}),
    )

    assert groups(two, "baseline") == one(
        "forbidden AppArmor profiles",
        f"spec.template.metadata.annotations[{prefix}a] is forbidden, forbidden values found: unconfined",
        f"spec.template.metadata.annotations[{prefix}b] is forbidden, forbidden values found: unconfined",
    )
    assert groups(same, "baseline").startswith("(Forbidden reason: forbidden AppArmor profile,")


@pytest.mark.parametrize(
    ("obj", "level", "last_without", "first_with"),
    [
        (pod(container(allowPrivilegeEscalation=None), os={"name": "windows"}), "restricted", "v1.25", "v1.24"),
        (pod(container(capabilities=None), os={"name": "windows"}), "restricted", "v1.25", "v1.24"),
        (pod(container(seccompProfile=None), os={"name": "windows"}), "restricted", "v1.25", "v1.24"),
        (pod(securityContext={"sysctls": [{"name": "net.ipv4.ip_local_reserved_ports"}]}), "baseline", "v1.27", "v1.26"),
        (pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_fin_timeout"}]}), "baseline", "v1.29", "v1.28"),
        (pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}), "baseline", "v1.32", "v1.31"),
        (pod(container(seLinuxOptions={"type": "container_engine_t"})), "baseline", "v1.31", "v1.30"),
        (pod(annotations={"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}), "baseline", "v1.19", "v1.18"),
        (pod(annotations={"container.seccomp.security.alpha.kubernetes.io/c": ""}), "baseline", "v1.19", "v1.18"),
        (pod(container(runAsNonRoot=False), hostUsers=False), "restricted", "v1.35", "v1.34"),
        (pod(container(runAsUser=0), hostUsers=False), "restricted", "v1.35", "v1.34"),
        (pod(container(procMount="Unmasked"), hostUsers=False), "baseline", "v1.35", "v1.34"),
    ],
)  # fmt: skip
def test_a_version_brings_its_own_revision(
    obj: dict[str, Any], level: str, last_without: str, first_with: str
) -> None:
    assert ask(obj, level, last_without).status is Status.PASS
    assert ask(obj, level, first_with).status is Status.FAIL


def test_user_namespaces_relax_nothing_at_latest() -> None:
    assert ask(pod(container(runAsUser=0), hostUsers=False)).status is Status.FAIL
    assert ask(pod(container(runAsUser=0), hostUsers=True), version="v1.36").status is Status.FAIL
    assert ask(pod(container(runAsUser=0)), version="v1.36").status is Status.FAIL


def test_unmasked_proc_stays_restricted_in_user_namespaces() -> None:
    found = ask(pod(container(procMount="Unmasked"), hostUsers=False), version="v1.35")

    assert found.properties["controls"] == "procMount_restricted"


def test_other_systems_than_windows_get_no_relief() -> None:
    assert ask(pod(container(capabilities=None), os={"name": "linux"})).status is Status.FAIL


def test_windows_pods_still_must_not_run_as_root() -> None:
    obj = pod(container(runAsNonRoot=None), os={"name": "windows"})

    assert ask(obj).properties["controls"] == "runAsNonRoot"


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        ("Deployment", "spec.template.spec"),
        ("DaemonSet", "spec.template.spec"),
        ("StatefulSet", "spec.template.spec"),
        ("ReplicaSet", "spec.template.spec"),
        ("ReplicationController", "spec.template.spec"),
        ("Job", "spec.template.spec"),
        ("CronJob", "spec.jobTemplate.spec.template.spec"),
    ],
)
def test_the_pod_is_found_in_every_controller(kind: str, prefix: str) -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    template = pod(hostNetwork=True, annotations={key: "unconfined"})
    spec: dict[str, Any] = {"template": template}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": spec}}

    found = groups({"kind": kind, "spec": spec}, "baseline")

    assert found == one(
        "forbidden AppArmor profile",
        f"spec.template.metadata.annotations[{key}] is forbidden, forbidden values found: unconfined",
    ) + one("host namespaces", f"{prefix}.hostNetwork is forbidden, forbidden values found: true")


def test_annotations_of_the_controller_itself_do_not_count() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    obj = {
        "kind": "Deployment",
        "metadata": {"annotations": {key: "unconfined"}},
        "spec": {"template": pod()},
    }

    assert ask(obj).status is Status.PASS


@pytest.mark.parametrize("kind", ["ConfigMap", "Node", "", None])
def test_an_object_without_a_pod_is_an_error(kind: str | None) -> None:
    found = ask({"kind": kind, "spec": {}})

    assert found == Outcome(
        Status.ERROR, "failed to get pod resource: could not find correct resource type"
    )


@pytest.mark.parametrize(
    "obj",
    [
        pod(hostNetwork="true"),
        pod(hostPID=1),
        pod(container(privileged="true")),
        pod(container(runAsUser="0")),
        pod(container(runAsUser=0.5)),
        pod(container(runAsUser=False)),
        pod(container(capabilities={"drop": ["ALL"], "add": "SYS_ADMIN"})),
        pod(container(capabilities={"drop": ["ALL"], "add": [1]})),
        pod(container(seccompProfile="Unconfined")),
        pod(volumes={"hostPath": {}}),
        pod(volumes=["hostPath"]),
        pod(annotations={"container.apparmor.security.beta.kubernetes.io/c": 5}),
        {"kind": "Pod", "spec": []},
        {"kind": "Pod", "spec": {"containers": {"c": {}}}},
        {"kind": "Deployment", "spec": {"template": "x"}},
        {"kind": ["Pod"]},
    ],
)
def test_a_field_of_the_wrong_type_never_passes(obj: dict[str, Any]) -> None:
    found = ask(obj)

    assert found.status is Status.ERROR
    assert found.message.startswith("failed to get pod resource: field `")


def test_numbers_written_as_floats_are_the_same_numbers() -> None:
    assert ask(pod(container(runAsUser=0.0))).status is Status.FAIL


def test_reports_list_controls_and_full_image_names() -> None:
    obj = pod(
        {"name": "a", "image": "nginx", "securityContext": {"privileged": True}},
        {"name": "b", "image": "lib/x:2@sha256:00", "securityContext": {"privileged": True}},
        {"name": "c", "image": "localhost/y", "securityContext": {"privileged": True}},
        {"name": "d", "securityContext": {"privileged": True}},
        {"name": "e", "image": "r:5000/z&", "securityContext": {"privileged": True}},
        hostPID=True,
    )

    assert ask(obj, "baseline", "v1.30").properties == {
        "standard": "baseline",
        "version": "v1.30",
        "controls": "hostNamespaces,privileged",
        "controlsJSON": '[{"ID":"hostNamespaces","Name":"Host Namespaces","Images":null},'
        '{"ID":"privileged","Name":"Privileged Containers","Images":["docker.io/nginx:latest",'
        '"docker.io/lib/x@sha256:00","localhost/y:latest","d","r:5000/z\\u0026:latest"]}]',
    }


def test_the_level_privileged_checks_everything() -> None:
    assert ask(pod({"name": "c"}), "privileged").status is Status.FAIL


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, 'level: Unsupported value: ""'),
        ({"level": "strict"}, 'level: Unsupported value: "strict"'),
        ({"level": "baseline", "version": "1.30"}, 'version: Unsupported value: "1.30"'),
        ({"level": "baseline", "version": "v1.٣"}, 'version: Unsupported value: "v1.٣"'),
        ({"level": "baseline", "version": "v1.030"}, 'version: Unsupported value: "v1.030"'),
        ({"level": "baseline", "version": 1.3}, 'version: Unsupported value: "1.3"'),
        ({"level": ["baseline"]}, "level: Unsupported value: \"['baseline']\""),
    ],
)
def test_an_unknown_level_or_version_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError) as raised:
        compile_pod_security(spec)
    assert raised.value.message == f"spec.rules[0].podSecurity.{message}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "spec",
                    "containers",
                    "securityContext",
                    "volumes",
                    "sysctls",
                    "name",
                    "type",
                    "ports",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_object_breaks_the_check(spec: Any) -> None:
    for obj in ({"kind": "Pod", "spec": spec}, {"kind": "CronJob", "spec": {"jobTemplate": spec}}):
        assert ask(obj).status in (Status.PASS, Status.FAIL, Status.ERROR)
