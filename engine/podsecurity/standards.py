"""The Pod Security Standards as a table: every check, its level, its control's name, and what changed in which version.

The order is the one Kubernetes runs its checks in, and so the order of reports. Kyverno chooses versions and levels in ways
of its own, which `checks_for` follows (row A-76; `observed/podsecurity.jsonl`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.record import record

from . import host, privileges, profiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from .pod import Pod, Violation

    Test = Callable[[Pod], Violation | None]

BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
LEVELS: Final = ("privileged", BASELINE, RESTRICTED)

LATEST_MINOR: Final = 34
"""What `latest` means: the revision of the standards in Kyverno's own library.

Later revisions, which relax some checks for pods in user namespaces (`hostUsers: false`), apply where they are asked for by
number.
"""

_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]{0,5})")
_SELINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    }
)
_SYSCTLS_27: Final = _SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_29: Final = _SYSCTLS_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
_SYSCTLS_32: Final = _SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


@record
class Check:
    """One check: the id that reports show, its level, the control that exclusions name, its test per minor version."""

    id: str
    level: str
    control: str
    versions: tuple[tuple[int, Test], ...]

    def test_for(self, minor: int) -> Test:
        """Return the newest test that `minor` has; its first one where the check is younger than `minor`.

        Kubernetes leaves younger checks out; Kyverno runs them (observed for capabilities at v1.19).
        """
        chosen = self.versions[0][1]
        for since, test in self.versions:
            if since <= minor:
                chosen = test
        return chosen


def _except_windows(test: Test) -> Test:
    """Leave out pods that say they are Windows pods: the fields cannot be set there (Kubernetes 1.25)."""
    return lambda pod: None if pod.is_windows else test(pod)


def _except_own_users(test: Test) -> Test:
    """Leave out pods in a user namespace, where root is nobody outside (KEP-127, Kubernetes 1.35)."""
    return lambda pod: None if pod.has_own_users else test(pod)


def _nothing(_pod: Pod) -> None:
    """Stand for a check at versions whose work another one does."""


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "allowPrivilegeEscalation",
        RESTRICTED,
        "Privilege Escalation",
        (
            (8, privileges.privilege_escalation),
            (25, _except_windows(privileges.privilege_escalation)),
        ),
    ),
    Check("appArmorProfile", BASELINE, "AppArmor", ((0, profiles.app_armor),)),
    Check(
        "capabilities_baseline", BASELINE, "Capabilities", ((0, privileges.default_capabilities),)
    ),
    Check(
        "capabilities_restricted",
        RESTRICTED,
        "Capabilities",
        (
            (22, privileges.dropped_capabilities),
            (25, _except_windows(privileges.dropped_capabilities)),
        ),
    ),
    Check("hostNamespaces", BASELINE, "Host Namespaces", ((0, host.host_namespaces),)),
    Check("hostPathVolumes", BASELINE, "HostPath Volumes", ((0, host.host_path_volumes),)),
    Check("hostPorts", BASELINE, "Host Ports", ((0, host.host_ports),)),
    Check("hostProbesAndHostLifecycle", BASELINE, "", ((34, host.host_probes),)),
    Check("privileged", BASELINE, "Privileged Containers", ((0, privileges.privileged),)),
    Check(
        "procMount",
        BASELINE,
        "/proc Mount Type",
        ((0, privileges.proc_mount), (35, _except_own_users(privileges.proc_mount))),
    ),
    Check(
        "procMount_restricted",
        RESTRICTED,
        "/proc Mount Type",
        ((0, _nothing), (35, privileges.proc_mount)),
    ),
    Check("restrictedVolumes", RESTRICTED, "Volume Types", ((0, host.restricted_volumes),)),
    Check(
        "runAsNonRoot",
        RESTRICTED,
        "Running as Non-root",
        ((0, profiles.run_as_non_root), (35, _except_own_users(profiles.run_as_non_root))),
    ),
    Check(
        "runAsUser",
        RESTRICTED,
        "Running as Non-root user",
        ((23, profiles.run_as_user), (35, _except_own_users(profiles.run_as_user))),
    ),
    Check(
        "seLinuxOptions",
        BASELINE,
        "SELinux",
        (
            (0, privileges.selinux(_SELINUX_TYPES)),
            (31, privileges.selinux(_SELINUX_TYPES | {"container_engine_t"})),
        ),
    ),
    Check(
        "seccompProfile_baseline",
        BASELINE,
        "Seccomp",
        ((0, profiles.seccomp_annotations), (19, profiles.seccomp_types)),
    ),
    Check(
        "seccompProfile_restricted",
        RESTRICTED,
        "Seccomp",
        ((19, profiles.seccomp_required), (25, _except_windows(profiles.seccomp_required))),
    ),
    Check(
        "sysctls",
        BASELINE,
        "Sysctls",
        (
            (0, host.sysctls(_SYSCTLS)),
            (27, host.sysctls(_SYSCTLS_27)),
            (29, host.sysctls(_SYSCTLS_29)),
            (32, host.sysctls(_SYSCTLS_32)),
        ),
    ),
    Check("windowsHostProcess", BASELINE, "HostProcess", ((0, privileges.host_process),)),
)


def checks_for(level: str, minor: int) -> tuple[tuple[Check, Test], ...]:
    """Return the checks of a level with the tests of a version, in report order.

    Level `privileged` runs everything, as Kyverno does; whoever wants no check writes no rule.
    """
    return tuple(
        (check, test)
        for check in CHECKS
        if (level != BASELINE or check.level == BASELINE)
        and (test := check.test_for(minor)) is not _nothing
    )


def minor_of(version: str) -> int | None:
    """Read `latest`, an absent version or `v1.N`; None when it is none of them."""
    if version in ("", "latest"):
        return LATEST_MINOR
    found = _VERSION.fullmatch(version)
    return int(found[1]) if found else None
