"""Defaults of what makes Pods from a template, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .pod_defaults import fill, pod_spec

if TYPE_CHECKING:
    from collections.abc import Callable

Object = dict[str, Any]


def _template(owner: Object) -> None:
    template = owner.get("template")
    if isinstance(template, dict):
        template.setdefault("metadata", {})
        if isinstance(template.get("spec"), dict):
            pod_spec(template["spec"])


def _deployment(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, replicas=1, strategy={}, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec["strategy"]
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(strategy, rollingUpdate={})
        fill(strategy["rollingUpdate"], maxUnavailable="25%", maxSurge="25%")
    _template(spec)


def _replica_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, replicas=1)
    _template(spec)


def _stateful_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    fill(
        spec,
        replicas=1,
        podManagementPolicy="OrderedReady",
        revisionHistoryLimit=10,
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Retain"},
    )
    _template(spec)


def _daemon_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    fill(spec, updateStrategy=rolling, revisionHistoryLimit=10)
    _template(spec)


def _job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(
        spec,
        parallelism=1,
        backoffLimit=6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy="TerminatingOrFailed",
    )
    _template(spec)


def _cron_job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    fill(
        spec,
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )
    template = (spec.get("jobTemplate") or {}).get("spec")
    if isinstance(template, dict):
        _template(template)


WORKLOADS: dict[str, Callable[[Object], None]] = {
    "Deployment": _deployment,
    "ReplicaSet": _replica_set,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "CronJob": _cron_job,
}
