"""Checks of settings that containers inherit from their pod: AppArmor, seccomp, and the user they run as.

Each check is a function of a pod that answers a Violation or None. Reasons and paths are those of Kubernetes'
pod-security-admission as Kyverno reports them (rows A-76, P-47).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from .pod import (
    Container,
    Fault,
    Pod,
    Violation,
    contexts,
    flag,
    number,
    optional_block,
    violation,
    word,
)

_APP_ARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_ANNOTATION: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER_ANNOTATION: Final = "container.seccomp.security.alpha.kubernetes.io/"
_ALLOWED_TYPES: Final = frozenset({"RuntimeDefault", "Localhost"})


def app_armor(pod: Pod) -> Violation | None:
    """Forbid AppArmor profiles other than the default and local ones, as field or as annotation."""
    faults = _bad_types(pod, "appArmorProfile")
    annotated = sorted(
        key
        for key in pod.annotations
        if key.startswith(_APP_ARMOR_ANNOTATION) and not _allowed_app_armor(pod.annotations, key)
    )
    faults += [
        Fault(f"metadata.annotations[{key}]", bad=word(pod.annotations, key)) for key in annotated
    ]
    if not faults:
        return None
    types = {fault.bad for fault in faults if not fault.path.startswith("metadata.")}
    plural = "s" if len(types) + len(annotated) > 1 else ""
    return violation(f"forbidden AppArmor profile{plural}", faults)


def _allowed_app_armor(annotations: Mapping[str, Any], key: str) -> bool:
    profile = word(annotations, key)
    return profile in ("", "runtime/default") or profile.startswith("localhost/")


def _bad_types(pod: Pod, field: str) -> list[Fault]:
    """Return the profiles of the pod and of its containers whose type is not allowed."""
    return [
        Fault(f"{owner}.securityContext.{field}.type", bad=kind, container=container)
        for owner, container, security in contexts(pod)
        if (profile := optional_block(security, field)) is not None
        and (kind := word(profile, "type")) not in _ALLOWED_TYPES
    ]


def seccomp_annotations(pod: Pod) -> Violation | None:
    """Forbid seccomp annotations that lift the filter; standards before v1.19 know no field."""
    keys = [_SECCOMP_ANNOTATION]
    keys += [_SECCOMP_CONTAINER_ANNOTATION + one.name for one in pod.containers]
    bad = {
        key
        for key in keys
        if pod.annotations.get(key) is not None and not _allowed_seccomp(word(pod.annotations, key))
    }
    return violation(
        "seccompProfile",
        [
            Fault(f"metadata.annotations[{key}]", bad=word(pod.annotations, key))
            for key in sorted(bad)
        ],
    )


def _allowed_seccomp(profile: str) -> bool:
    return profile in ("runtime/default", "docker/default") or profile.startswith("localhost/")


def seccomp_types(pod: Pod) -> Violation | None:
    """Forbid seccomp profiles other than the default and local ones."""
    return violation("seccompProfile", _bad_types(pod, "seccompProfile"))


def seccomp_required(pod: Pod) -> Violation | None:
    """Require an allowed seccomp profile of every container, its own or the pod's."""
    return _set_or_inherited(
        pod,
        "seccompProfile",
        bad=_bad_types(pod, "seccompProfile"),
        pod_sets_it=optional_block(pod.security, "seccompProfile") is not None,
        sets_it=lambda one: optional_block(one.context, "seccompProfile") is not None,
        path="seccompProfile.type",
    )


def run_as_non_root(pod: Pod) -> Violation | None:
    """Require runAsNonRoot=true of every container, its own or the pod's."""
    found = [
        Fault(f"{owner}.securityContext.runAsNonRoot", bad=False, container=container)
        for owner, container, security in contexts(pod)
        if flag(security, "runAsNonRoot") is False
    ]
    return _set_or_inherited(
        pod,
        "runAsNonRoot != true",
        bad=found,
        pod_sets_it=flag(pod.security, "runAsNonRoot") is not None,
        sets_it=lambda one: flag(one.context, "runAsNonRoot") is not None,
        path="runAsNonRoot",
    )


def _set_or_inherited(
    pod: Pod,
    reason: str,
    *,
    bad: list[Fault],
    pod_sets_it: bool,
    sets_it: Callable[[Container], bool],
    path: str,
) -> Violation | None:
    """Report wrong settings; where there are none, the containers that neither set nor inherit one.

    Kubernetes never mentions the second group beside the first. It stays behind as hidden faults, so that excusing one
    container's wrong setting cannot excuse another container that sets nothing.
    """
    unset: list[Fault] = []
    if not pod_sets_it:
        unset = [
            Fault(f"{one.path}.securityContext.{path}", required=True, container=one)
            for one in pod.containers
            if not sets_it(one)
        ]
    return violation(reason, bad, hidden=unset) if bad else violation(reason, unset)


def run_as_user(pod: Pod) -> Violation | None:
    """Forbid runAsUser=0."""
    return violation(
        "runAsUser=0",
        [
            Fault(f"{owner}.securityContext.runAsUser", bad=0, container=container)
            for owner, container, security in contexts(pod)
            if number(security, "runAsUser") == 0
        ],
    )
