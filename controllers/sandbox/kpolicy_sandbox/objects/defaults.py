"""Defaults of built-in kinds: what a real API server fills in before webhooks see an object.

Policies judge what is there after defaulting (imagePullPolicy, protocol, restartPolicy, strategy, …), hence written down here
for every kind that people's policies look at; the source is the defaults.go of each API group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable

    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]


def with_defaults(resource: Resource, obj: Object) -> Object:
    """Return an object with its kind's defaults; the given one is left as it is."""
    filler = _FILLERS.get(resource.kind)
    if resource.custom is not None or filler is None:
        return obj
    copy: Object = orjson.loads(orjson.dumps(obj))
    filler(copy)
    return copy


def _fill(target: Object, **values: Any) -> None:
    for key, value in values.items():
        if target.get(key) is None:
            target[key] = value


def _pod(pod: Object) -> None:
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return
    pod_spec(spec)
    _fill(spec, enableServiceLinks=True)
    _fill(pod.setdefault("status", {}), phase="Pending", qosClass=_quality(spec))


def _quality(spec: Object) -> str:
    resources = [one.get("resources") or {} for one in spec.get("containers") or ()]
    if not any(one.get("limits") or one.get("requests") for one in resources):
        return "BestEffort"
    full = all(
        {"cpu", "memory"} <= (one.get("limits") or {}).keys()
        and one.get("limits") == one.get("requests")
        for one in resources
    )
    return "Guaranteed" if full else "Burstable"


def pod_spec(spec: Object) -> None:
    """Fill the spec of a Pod or of a template."""
    _fill(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        terminationGracePeriodSeconds=30,
        securityContext={},
        schedulerName="default-scheduler",
    )
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            _container(container, host_network=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or ():
        _volume(volume)


def _container(container: Object, *, host_network: bool) -> None:
    _fill(
        container,
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        resources={},
        imagePullPolicy=_pull_policy(str(container.get("image", ""))),
    )
    resources = container["resources"]
    if limits := resources.get("limits"):
        requests = resources.setdefault("requests", {})
        for name, value in limits.items():
            requests.setdefault(name, value)
    for port in container.get("ports") or ():
        _fill(port, protocol="TCP")
        if host_network and port.get("containerPort"):
            _fill(port, hostPort=port["containerPort"])
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe):
            _probe(container[probe])
    for env in container.get("env") or ():
        if reference := (env.get("valueFrom") or {}).get("fieldRef"):
            _fill(reference, apiVersion="v1")


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in {"", "latest"} else "IfNotPresent"


def _probe(probe: Object) -> None:
    _fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    if http := probe.get("httpGet"):
        _fill(http, path="/", scheme="HTTP")
    if grpc := probe.get("grpc"):
        _fill(grpc, service="")


def _volume(volume: Object) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(source) is not None:
            _fill(volume[source], defaultMode=420)
    for part in (volume.get("projected") or {}).get("sources") or ():
        if part.get("serviceAccountToken") is not None:
            _fill(part["serviceAccountToken"], expirationSeconds=3600)
    if volume.get("hostPath") is not None:
        _fill(volume["hostPath"], type="")


def _template(owner: Object) -> None:
    template = owner.get("template")
    if isinstance(template, dict):
        template.setdefault("metadata", {})
        if isinstance(template.get("spec"), dict):
            pod_spec(template["spec"])


def _deployment(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, replicas=1, strategy={}, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec["strategy"]
    _fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(strategy, rollingUpdate={})
        _fill(strategy["rollingUpdate"], maxUnavailable="25%", maxSurge="25%")
    _template(spec)


def _replica_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, replicas=1)
    _template(spec)


def _stateful_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _fill(
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
    _fill(spec, updateStrategy=rolling, revisionHistoryLimit=10)
    _template(spec)


def _job(obj: Object) -> None:
    _job_spec(obj.setdefault("spec", {}))


def _job_spec(spec: Object) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    _fill(
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
    _fill(
        spec,
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )
    template = (spec.get("jobTemplate") or {}).get("spec")
    if isinstance(template, dict):
        _template(template)


def _service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, type="ClusterIP", sessionAffinity="None")
    for port in spec.get("ports") or ():
        _fill(port, protocol="TCP", targetPort=port.get("port"))
    if spec["type"] == "ExternalName":
        return
    _fill(spec, internalTrafficPolicy="Cluster", ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        _fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        _fill(spec, allocateLoadBalancerNodePorts=True)


def _secret(obj: Object) -> None:
    _fill(obj, type="Opaque")


def _binding(obj: Object) -> None:
    _fill(obj.setdefault("roleRef", {}), apiGroup="rbac.authorization.k8s.io")
    for subject in obj.get("subjects") or ():
        core = subject.get("kind") == "ServiceAccount"
        if not core:
            _fill(subject, apiGroup="rbac.authorization.k8s.io")


def _network_policy(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    both = ["Ingress", "Egress"] if "egress" in spec else ["Ingress"]
    _fill(spec, policyTypes=both, podSelector={})
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction) or ():
            for port in rule.get("ports") or ():
                _fill(port, protocol="TCP")


def _claim(obj: Object) -> None:
    _fill(obj.setdefault("spec", {}), volumeMode="Filesystem")
    _fill(obj.setdefault("status", {}), phase="Pending")


def _webhooks(obj: Object) -> None:
    mutating = obj.get("kind") == "MutatingWebhookConfiguration"
    for hook in obj.get("webhooks") or ():
        _fill(
            hook,
            failurePolicy="Fail",
            matchPolicy="Equivalent",
            namespaceSelector={},
            objectSelector={},
            timeoutSeconds=10,
        )
        if mutating:
            _fill(hook, reinvocationPolicy="Never")
        for rule in hook.get("rules") or ():
            _fill(rule, scope="*")
        if service := (hook.get("clientConfig") or {}).get("service"):
            _fill(service, port=443)


def _crd(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = str(names.get("kind", ""))
    _fill(names, singular=kind.lower(), listKind=f"{kind}List")
    _fill(spec, conversion={"strategy": "None"})


def _autoscaler(obj: Object) -> None:
    _fill(obj.setdefault("spec", {}), minReplicas=1)


def _namespace(obj: Object) -> None:
    labels = obj["metadata"].setdefault("labels", {})
    if name := obj["metadata"].get("name"):
        labels["kubernetes.io/metadata.name"] = name


_FILLERS: dict[str, Callable[[Object], None]] = {
    "Pod": _pod,
    "Deployment": _deployment,
    "ReplicaSet": _replica_set,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "CronJob": _cron_job,
    "Service": _service,
    "Secret": _secret,
    "RoleBinding": _binding,
    "ClusterRoleBinding": _binding,
    "NetworkPolicy": _network_policy,
    "PersistentVolumeClaim": _claim,
    "ValidatingWebhookConfiguration": _webhooks,
    "MutatingWebhookConfiguration": _webhooks,
    "CustomResourceDefinition": _crd,
    "HorizontalPodAutoscaler": _autoscaler,
    "Namespace": _namespace,
}
