"""What exclusions of rules and exceptions excuse, and above all what they do not."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import PolicyError
from engine.model import Outcome, Status
from engine.podsecurity import compile_pod_security, exclusion_faults

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
    return {"kind": "Pod", "metadata": {"annotations": annotations}, "spec": spec}


def exclude(
    control: str, *images: str, field: str = "", values: tuple[str, ...] = ()
) -> dict[str, Any]:
    found: dict[str, Any] = {"controlName": control}
    if images:
        found["images"] = list(images)
    if field:
        found |= {"restrictedField": field, "values": list(values)}
    return found


def ask(
    obj: dict[str, Any], *own: dict[str, Any], extra: Any = (), level: str = "restricted"
) -> Outcome:
    spec = {"level": level, "version": "latest", "exclude": list(own)}
    return compile_pod_security(spec, extra)(obj, "r")


def passes(obj: dict[str, Any], *own: dict[str, Any], level: str = "restricted") -> bool:
    return ask(obj, *own, level=level).status is Status.PASS


ROOT = pod(container("a", runAsUser=0), container("b", runAsUser=0))


def test_an_image_excuses_its_own_containers_only() -> None:
    found = ask(ROOT, exclude("Running as Non-root user", "r.io/a:*"))

    assert "containers[1].securityContext.runAsUser" in found.message
    assert "containers[0]" not in found.message
    assert passes(ROOT, exclude("Running as Non-root user", "r.io/a:*", "r.io/b:1"))
    assert passes(ROOT, *[exclude("Running as Non-root user", f"r.io/{name}:1") for name in "ab"])


def test_reports_still_list_the_images_of_excused_containers() -> None:
    found = ask(ROOT, exclude("Running as Non-root user", "r.io/a:*"))

    assert '"Images":["r.io/a:1","r.io/b:1"]' in found.properties["controlsJSON"]


@pytest.mark.parametrize("image", ["r.io/a", "r.io/a:1x", "R.io/a:1", "r.io/?", "a:1", ""])
def test_an_image_must_fit_as_a_whole(image: str) -> None:
    assert not passes(pod(container("a", runAsUser=0)), exclude("Running as Non-root user", image))


def test_an_image_does_not_excuse_the_pods_own_fields() -> None:
    obj = pod(container("a"), securityContext={"runAsUser": 0})

    assert not passes(obj, exclude("Running as Non-root user", "*"))
    assert passes(obj, exclude("Running as Non-root user"))


def test_no_images_excuses_only_the_pods_own_fields() -> None:
    assert not passes(pod(container("a", runAsUser=0)), exclude("Running as Non-root user"))
    assert not passes(
        pod(container("a", seccompProfile={"type": "Unconfined"})), exclude("Seccomp")
    )
    assert not passes(
        pod(container("a", seLinuxOptions={"type": "x"})), exclude("SELinux"), level="baseline"
    )


def test_no_images_excuses_the_unset_field_of_the_first_container_but_no_wrong_one() -> None:
    control = exclude("Running as Non-root")

    assert passes(pod(container("a", runAsNonRoot=None)), control)
    assert not passes(pod(container("a"), container("b", runAsNonRoot=None)), control)
    assert not passes(pod(container("a", runAsNonRoot=False)), control)
    assert not passes(pod(initContainers=[container("i", runAsNonRoot=None)]), control)


def test_one_control_does_not_excuse_another() -> None:
    obj = pod(container("a", privileged=True, procMount="Unmasked"))

    found = ask(obj, exclude("Privileged Containers", "*"))

    assert found.properties["controls"] == "procMount"


def test_a_field_narrows_to_that_field() -> None:
    field = "spec.containers[*].securityContext.privileged"
    own = exclude("Privileged Containers", "*", field=field, values=("true",))

    assert passes(pod(container("a"), container("b", privileged=True)), own)
    assert not passes(pod(initContainers=[container("i", privileged=True)]), own)


@pytest.mark.parametrize(
    "field",
    ["spec.containers[*]", "spec.containers[0].securityContext.runAsUser[*]", "spec.*", "*"],
)
def test_a_field_must_be_the_whole_path(field: str) -> None:
    own = exclude("Running as Non-root user", "*", field=field, values=("0",))

    assert not passes(pod(container("a", runAsUser=0)), own)


def test_a_field_with_its_index_is_that_one_field() -> None:
    field = "spec.containers[1].securityContext.runAsUser"
    found = ask(ROOT, exclude("Running as Non-root user", "*", field=field, values=("0",)))

    assert "containers[0].securityContext.runAsUser is forbidden" in found.message
    assert "containers[1]" not in found.message


def test_all_found_values_must_be_excused() -> None:
    field = "spec.containers[*].securityContext.capabilities.add"
    obj = pod(container("a", capabilities={"drop": ["ALL"], "add": ["SYS_TIME", "NET_RAW"]}))

    def own(*values: str) -> dict[str, Any]:
        return exclude("Capabilities", "*", field=field, values=values)

    assert not passes(obj, own("SYS_TIME"))
    assert not passes(obj, own("NET_RAW"))
    assert not passes(obj, own("SYS_TIME"), own("NET_RAW"))
    assert passes(obj, own("SYS_TIME", "NET_RAW"))
    assert passes(obj, own("SYS_*", "NET_RA?"))


def test_values_are_compared_as_text() -> None:
    ports = [{"containerPort": 1, "hostPort": 443}, {"containerPort": 2, "hostPort": 80}]
    obj = pod({**container("a"), "ports": ports})
    field = "spec.containers[*].ports[*].hostPort"

    found = ask(obj, exclude("Host Ports", "*", field=field, values=("443",)), level="baseline")

    assert "ports[1].hostPort is forbidden, forbidden values found: 80" in found.message
    assert "ports[0]" not in found.message


def test_an_empty_value_is_a_value() -> None:
    obj = pod(volumes=[{"hostPath": {"path": ""}}])
    own = exclude("HostPath Volumes", field="spec.volumes[*].hostPath", values=("/var",))

    assert not passes(obj, own, level="baseline")


def test_excusing_a_wrong_setting_does_not_excuse_a_missing_one() -> None:
    obj = pod(container("a", runAsNonRoot=False), container("b", runAsNonRoot=None))

    found = ask(obj, exclude("Running as Non-root", "r.io/a:1"))

    assert "spec.containers[1].securityContext.runAsNonRoot: Required value" in found.message
    assert '"Images":["r.io/b:1"]' in found.properties["controlsJSON"]
    assert passes(obj, exclude("Running as Non-root", "r.io/a:1", "r.io/b:1"))


def test_a_container_that_inherits_an_excused_setting_is_excused() -> None:
    obj = pod(
        container("a", seccompProfile=None, runAsNonRoot=None),
        container("b", seccompProfile=None, runAsNonRoot=None),
        securityContext={"seccompProfile": {"type": "Unconfined"}, "runAsNonRoot": False},
    )
    own = [
        exclude(
            "Seccomp", field="spec.securityContext.seccompProfile.type", values=("Unconfined",)
        ),
        exclude(
            "Running as Non-root", field="spec.securityContext.runAsNonRoot", values=("false",)
        ),
    ]

    assert passes(obj, *own)


def test_probes_of_other_hosts_cannot_be_excused() -> None:
    obj = pod({**container("a"), "livenessProbe": {"httpGet": {"host": "h"}}})
    every = ["AppArmor", "SELinux", "Seccomp", "HostProcess"]

    assert not passes(obj, *[exclude(name, "*") for name in every], *map(exclude, every))


@pytest.mark.parametrize(
    "field",
    [
        'metadata.annotations["container.apparmor.security.beta.kubernetes.io/*"]',
        "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]",
    ],
)
def test_an_annotation_is_excused_by_its_documented_name(field: str) -> None:
    obj = pod(annotations={"container.apparmor.security.beta.kubernetes.io/c": "unconfined"})

    assert passes(obj, exclude("AppArmor", field=field, values=("unconfined",)))
    assert not passes(obj, exclude("AppArmor", field=field, values=("runtime/*",)))


def test_the_exclusions_of_exceptions_make_a_skip() -> None:
    obj = pod(container("a", privileged=True), hostPID=True)
    both = [exclude("Privileged Containers", "*"), exclude("Host Namespaces")]

    assert ask(obj, extra=both) == Outcome(Status.SKIP)
    assert ask(obj, both[0], extra=[both[1]]) == Outcome(Status.SKIP)
    assert ask(obj, *both, extra=both).status is Status.PASS
    assert ask(pod(), extra=both).status is Status.PASS


def test_an_exception_that_excuses_a_part_leaves_the_rest_forbidden() -> None:
    obj = pod(container("a", privileged=True), hostPID=True)

    found = ask(obj, extra=[exclude("Privileged Containers", "*")])

    assert (found.status, found.properties["controls"]) == (Status.FAIL, "hostNamespaces")


def test_exceptions_work_on_controllers_with_the_paths_of_pods() -> None:
    field = "spec.containers[*].securityContext.privileged"
    obj = {"kind": "Deployment", "spec": {"template": pod(container("a", privileged=True))}}

    found = ask(obj, extra=[exclude("Privileged Containers", "*", field=field, values=("true",))])

    assert found.status is Status.SKIP


@pytest.mark.parametrize(
    "wrong",
    [
        {"controlName": "Privileged Containers"},
        {"controlName": "Privileged Containers", "images": []},
        {"controlName": "Privileged Containers", "images": "*"},
        {"controlName": "Privileged Containers", "images": ["*"], "values": ["true"]},
        {"controlName": "Privileged Containers", "images": ["*"], "restrictedField": "x"},
        {"controlName": "Everything", "images": ["*"]},
        {"images": ["*"]},
        "Privileged Containers",
    ],
)
def test_an_exclusion_that_is_not_acceptable_excuses_nothing(wrong: Any) -> None:
    obj = pod(container("a", privileged=True))

    assert ask(obj, extra=[wrong]).status is Status.FAIL
    with pytest.raises(PolicyError):
        ask(obj, wrong)


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({"controlName": "Capabilities"}, 'x[0].controlName: Invalid value: "Capabilities": exclude.images must be specified for the container level control'),
        ({"controlName": "Sysctls", "images": ["*"]}, 'x[0].controlName: Invalid value: "Sysctls": exclude.images must not be specified for the pod level control'),
        ({"controlName": "AppArmor", "restrictedField": "f"}, "x[0].values: Forbidden: values is required"),
        ({"controlName": "AppArmor", "values": ["v"]}, "x[0].restrictedField: Forbidden: restrictedField is required"),
        ({"controlName": "Nothing"}, 'x[0].controlName: Unsupported value: "Nothing"'),
        ({"controlName": "AppArmor", "images": [1]}, "x[0].images: Invalid value: must be a list of strings"),
        ({"controlName": "AppArmor", "restrictedField": 1}, "x[0].restrictedField: Invalid value: must be a string"),
        (None, "x[0]: Invalid value: must be an object"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_exclusion_is_told_in_kyvernos_words(entry: Any, fault: str) -> None:
    assert exclusion_faults([entry], "x") == [fault]


@pytest.mark.parametrize(
    "control",
    ["Volume Types", "Privilege Escalation", "Running as Non-root", "Running as Non-root user"],
)
def test_a_restricted_control_does_not_belong_to_baseline(control: str) -> None:
    images = [] if control != "Privilege Escalation" else ["*"]
    entry = {"controlName": control, "images": images}
    text = "Invalid control name defined at the given level"

    assert exclusion_faults([entry], "x", level="baseline") == [
        f'x[0].controlName: Invalid value: "{control}": {text}'
    ]
    assert exclusion_faults([entry], "x", level="restricted") == []


def test_good_exclusions_have_no_faults() -> None:
    assert exclusion_faults(None, "x") == []
    assert (
        exclusion_faults([exclude("Seccomp"), exclude("Seccomp", "*")], "x", level="baseline") == []
    )
    assert exclusion_faults("Seccomp", "x") == ["x: Invalid value: must be a list"]
