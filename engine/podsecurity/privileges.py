"""Checks of what containers may do: privileges, capabilities, SELinux options, /proc and Windows host processes.

Each check is a function of a pod that answers a Violation or None. Reasons and paths are those of Kubernetes'
pod-security-admission as Kyverno reports them (rows A-76, P-47).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .pod import (
    Container,
    Fault,
    Pod,
    Violation,
    block,
    contexts,
    flag,
    optional_block,
    violation,
    word,
    words,
)

_DEFAULT_CAPABILITIES: Final = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_ADDABLE_CAPABILITIES: Final = frozenset({"NET_BIND_SERVICE"})


def privileged(pod: Pod) -> Violation | None:
    """Forbid privileged containers."""
    return violation(
        "privileged",
        [
            Fault(f"{one.path}.securityContext.privileged", bad=True, container=one)
            for one in pod.containers
            if one.security is not None and flag(one.security, "privileged")
        ],
    )


def privilege_escalation(pod: Pod) -> Violation | None:
    """Require allowPrivilegeEscalation=false of every container."""
    found = [_escalation(one) for one in pod.containers]
    return violation("allowPrivilegeEscalation != false", [fault for fault in found if fault])


def _escalation(container: Container) -> Fault | None:
    path = f"{container.path}.securityContext.allowPrivilegeEscalation"
    if container.security is None:
        return Fault(path, required=True, container=container)
    allowed = flag(container.security, "allowPrivilegeEscalation")
    if allowed is False:
        return None
    return Fault(path, bad="nil" if allowed is None else allowed, container=container)


def default_capabilities(pod: Pod) -> Violation | None:
    """Forbid adding capabilities beyond the container runtime's default set."""
    return violation("non-default capabilities", list(_added(pod, _DEFAULT_CAPABILITIES)))


def dropped_capabilities(pod: Pod) -> Violation | None:
    """Require that every container drops ALL and adds at most NET_BIND_SERVICE."""
    missing = [
        Fault(f"{one.path}.securityContext.capabilities.drop", required=True, container=one)
        for one in pod.containers
        if "ALL" not in words(block(one.context, "capabilities"), "drop")
    ]
    return violation("unrestricted capabilities", [*missing, *_added(pod, _ADDABLE_CAPABILITIES)])


def _added(pod: Pod, allowed: frozenset[str]) -> Iterator[Fault]:
    for one in pod.containers:
        if one.security is None or one.security.get("capabilities") is None:
            continue
        added = set(words(block(one.security, "capabilities"), "add")) - allowed
        if added:
            path = f"{one.path}.securityContext.capabilities.add"
            yield Fault(path, bad=tuple(sorted(added)), container=one)


def proc_mount(pod: Pod) -> Violation | None:
    """Forbid other views of /proc than the masked default."""
    return violation(
        "procMount",
        [
            Fault(f"{one.path}.securityContext.procMount", bad=kind, container=one)
            for one in pod.containers
            if one.security is not None
            and one.security.get("procMount") is not None
            and (kind := word(one.security, "procMount")) != "Default"
        ],
    )


def selinux(allowed: frozenset[str]) -> Callable[[Pod], Violation | None]:
    """Make the check that SELinux types are among `allowed` and that user and role are unset."""

    def check(pod: Pod) -> Violation | None:
        faults = [fault for one in contexts(pod) for fault in _options(*one, allowed)]
        return violation("seLinuxOptions", faults, names=False)

    return check


def _options(
    owner: str, container: Container | None, security: Mapping[str, Any], allowed: frozenset[str]
) -> Iterator[Fault]:
    options = optional_block(security, "seLinuxOptions")
    if options is None:
        return
    path = f"{owner}.securityContext.seLinuxOptions"
    kind = word(options, "type")
    if kind not in allowed:
        yield Fault(f"{path}.type", bad=kind, container=container)
    for name in ("user", "role"):
        value = word(options, name)
        if value:
            yield Fault(f"{path}.{name}", bad=value, container=container)


def host_process(pod: Pod) -> Violation | None:
    """Forbid Windows host processes."""
    return violation(
        "hostProcess",
        [
            Fault(
                f"{owner}.securityContext.windowsOptions.hostProcess", bad=True, container=container
            )
            for owner, container, security in contexts(pod)
            if security.get("windowsOptions") is not None
            and flag(block(security, "windowsOptions"), "hostProcess")
        ],
    )
