"""Which resources are served: built-in kinds from a table, custom ones from CRDs, found by path, by kind or by short name.

For routing, discovery, admission and RBAC; apart because CRDs change it while the server runs and everybody must see the same. Also the
same stored object in another version of its resource: Events by field, custom resources by name of the version only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# The kinds that are served without any CRD, one line each. Columns: group/version (core is `v1`), plural, Kind, short names, categories
# (comma separated, `-` for none), flags: `N` namespaced, `S` status subresource, `C` scale subresource, `R` review (create only, nothing
# is stored). The type in `types.json.xz` has the Kind's name.
BUILTIN = """\
v1                              namespaces                       Namespace                       ns       -    S
v1                              nodes                            Node                            no       -    S
v1                              persistentvolumes                PersistentVolume                pv       -    S
v1                              pods                             Pod                             po       all  NS
v1                              services                         Service                         svc      all  NS
v1                              configmaps                       ConfigMap                       cm       -    N
v1                              secrets                          Secret                          -        -    N
v1                              serviceaccounts                  ServiceAccount                  sa       -    N
v1                              endpoints                        Endpoints                       ep       -    N
v1                              events                           Event                           ev       -    N
v1                              limitranges                      LimitRange                      limits   -    N
v1                              resourcequotas                   ResourceQuota                   quota    -    NS
v1                              persistentvolumeclaims           PersistentVolumeClaim           pvc      -    NS
v1                              replicationcontrollers           ReplicationController           rc       all  NSC
v1                              podtemplates                     PodTemplate                     -        -    N
apps/v1                         deployments                      Deployment                      deploy   all  NSC
apps/v1                         replicasets                      ReplicaSet                      rs       all  NSC
apps/v1                         statefulsets                     StatefulSet                     sts      all  NSC
apps/v1                         daemonsets                       DaemonSet                       ds       all  NS
apps/v1                         controllerrevisions              ControllerRevision              -        -    N
batch/v1                        jobs                             Job                             -        all  NS
batch/v1                        cronjobs                         CronJob                         cj       all  NS
rbac.authorization.k8s.io/v1    roles                            Role                            -        -    N
rbac.authorization.k8s.io/v1    rolebindings                     RoleBinding                     -        -    N
rbac.authorization.k8s.io/v1    clusterroles                     ClusterRole                     -        -    -
rbac.authorization.k8s.io/v1    clusterrolebindings              ClusterRoleBinding              -        -    -
networking.k8s.io/v1            networkpolicies                  NetworkPolicy                   netpol   -    N
networking.k8s.io/v1            ingresses                        Ingress                         ing      -    NS
networking.k8s.io/v1            ingressclasses                   IngressClass                    -        -    -
policy/v1                       poddisruptionbudgets             PodDisruptionBudget             pdb      -    NS
coordination.k8s.io/v1          leases                           Lease                           -        -    N
events.k8s.io/v1                events                           Event                           ev       -    N
discovery.k8s.io/v1             endpointslices                   EndpointSlice                   -        -    N
scheduling.k8s.io/v1            priorityclasses                  PriorityClass                   pc       -    -
storage.k8s.io/v1               storageclasses                   StorageClass                    sc       -    -
autoscaling/v2                  horizontalpodautoscalers         HorizontalPodAutoscaler         hpa      all  NS
admissionregistration.k8s.io/v1 mutatingwebhookconfigurations    MutatingWebhookConfiguration    -        api-extensions -
admissionregistration.k8s.io/v1 validatingwebhookconfigurations  ValidatingWebhookConfiguration  -        api-extensions -
admissionregistration.k8s.io/v1 validatingadmissionpolicies      ValidatingAdmissionPolicy       -        api-extensions S
admissionregistration.k8s.io/v1 validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding -      api-extensions -
admissionregistration.k8s.io/v1 mutatingadmissionpolicies        MutatingAdmissionPolicy         -        api-extensions -
admissionregistration.k8s.io/v1 mutatingadmissionpolicybindings  MutatingAdmissionPolicyBinding  -        api-extensions -
apiextensions.k8s.io/v1         customresourcedefinitions        CustomResourceDefinition        crd,crds api-extensions S
authentication.k8s.io/v1        tokenreviews                     TokenReview                     -        -    R
authentication.k8s.io/v1        selfsubjectreviews               SelfSubjectReview               -        -    R
authorization.k8s.io/v1         subjectaccessreviews             SubjectAccessReview             -        -    R
authorization.k8s.io/v1         selfsubjectaccessreviews         SelfSubjectAccessReview         -        -    R
authorization.k8s.io/v1         localsubjectaccessreviews        LocalSubjectAccessReview        -        -    NR
authorization.k8s.io/v1         selfsubjectrulesreviews          SelfSubjectRulesReview          -        -    R
"""

# further subresources, as path below the object: kind of the body, group/version of that kind
SUBRESOURCES = {
    "v1/pods": {
        "eviction": "policy/v1 Eviction",
        "ephemeralcontainers": "v1 Pod",
        "log": "v1 Pod",
        "exec": "v1 PodExecOptions",
        "attach": "v1 PodAttachOptions",
        "portforward": "v1 PodPortForwardOptions",
        "proxy": "v1 PodProxyOptions",
    },
    "v1/serviceaccounts": {"token": "authentication.k8s.io/v1 TokenRequest"},
}


VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource in one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    has_scale: bool = False
    review: bool = False
    type: str = ""
    list_kind: str = ""
    subresources: dict[str, str] = field(default_factory=dict)
    custom: Any = None

    @property
    def api_version(self) -> str:
        """Return `group/version`, for the core group just the version."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage(self) -> str:
        """Return the key of the store in which all versions of this resource lie; Events of both groups share one."""
        if self.plural == "events" and self.group == "events.k8s.io":
            return "/events"
        return f"{self.group}/{self.plural}"

    @property
    def verbs(self) -> tuple[str, ...]:
        """Return the verbs that are served."""
        return ("create",) if self.review else VERBS


class Registry:
    """All resources that are served now."""

    def __init__(self) -> None:
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self._kinds: dict[tuple[str, str, str], Resource] = {}
        self._preferred: dict[str, list[str]] = {}
        self._by_storage: dict[str, list[Resource]] = {}
        self.revision = 0
        for line in BUILTIN.splitlines():
            self.add(_built_in(line.split()))

    def add(self, resource: Resource) -> None:
        """Serve a resource, or replace it."""
        self._resources[(resource.group, resource.version, resource.plural)] = resource
        self._kinds[(resource.group, resource.version, resource.kind)] = resource
        versions = self._preferred.setdefault(resource.group, [])
        if resource.version not in versions:
            versions.append(resource.version)
            versions.sort(key=version_order)
        self._changed()

    def remove(self, group: str, plural: str) -> None:
        """Serve a resource no more, in all its versions."""
        for key in [key for key in self._resources if key[0] == group and key[2] == plural]:
            gone = self._resources.pop(key)
            self._kinds.pop((gone.group, gone.version, gone.kind), None)
        left = {version for (of, version, _) in self._resources if of == group}
        self._preferred[group] = [v for v in self._preferred.get(group, []) if v in left]
        if not self._preferred[group]:
            del self._preferred[group]
        self._changed()

    def _changed(self) -> None:
        self._by_storage.clear()
        self.revision += 1

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource at a path."""
        return self._resources.get((group, version, plural))

    def by_api_version(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of a kind in the `group/version` that objects carry."""
        group, _, version = api_version.rpartition("/")
        return self._kinds.get((group, version, kind))

    def by_storage(self, storage: str) -> Resource | None:
        """Return the resource whose objects lie under a storage key, in its preferred version."""
        group, _, plural = storage.rpartition("/")
        return self.any_version(group, plural)

    def any_version(self, group: str, plural: str) -> Resource | None:
        """Return a resource in the group's preferred version of it."""
        for version in self._preferred.get(group, ()):
            if found := self._resources.get((group, version, plural)):
                return found
        return None

    def versions_of(self, resource: Resource) -> Sequence[Resource]:
        """Return every group and version in which the same stored objects are served."""
        if not self._by_storage:
            for one in self._resources.values():
                self._by_storage.setdefault(one.storage, []).append(one)
        return self._by_storage.get(resource.storage, [])

    def stored(self) -> Iterable[Resource]:
        """Return one resource per store, in its preferred version."""
        seen: set[str] = set()
        for resource in sorted(self._resources.values(), key=lambda r: version_order(r.version)):
            if not resource.review and resource.storage not in seen and resource.group != EVENTS:
                seen.add(resource.storage)
                yield resource

    def groups(self) -> dict[str, list[str]]:
        """Return every group with its versions, preferred first."""
        return self._preferred

    def in_version(self, group: str, version: str) -> list[Resource]:
        """Return the resources of a group and version, in alphabetical order."""
        found = [r for key, r in self._resources.items() if key[:2] == (group, version)]
        return sorted(found, key=lambda resource: resource.plural)


EVENTS = "events.k8s.io"


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sort versions as Kubernetes prefers them: v2, v1, v2beta1, v1beta1, v1alpha1, others by name."""
    import re

    found = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if not found:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (stage, -int(found[1]), -int(found[3] or 0), version)


def _built_in(columns: list[str]) -> Resource:
    api_version, plural, kind, short, categories, flags = columns
    group, _, version = api_version.rpartition("/")
    return Resource(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        namespaced="N" in flags,
        singular=kind.lower(),
        short_names=tuple(short.split(",")) if short != "-" else (),
        categories=tuple(categories.split(",")) if categories != "-" else (),
        has_status="S" in flags,
        has_scale="C" in flags,
        review="R" in flags,
        type=f"{group.partition('.')[0] or 'core'}.{version}.{kind}",
        list_kind=f"{kind}List",
        subresources=SUBRESOURCES.get(f"{api_version}/{plural}", {}),
    )


Object = dict[str, Any]


def presented(resource: Resource, obj: Object) -> Object:
    """Return an object in the version of a resource; the same object where it is in it already."""
    if resource.group == EVENTS:
        return obj if obj.get("apiVersion") == resource.api_version else to_new(obj)
    if resource.storage == "/events" and obj.get("apiVersion") != "v1":
        return to_core(obj)
    if obj.get("apiVersion") == resource.api_version:
        return obj
    return {**obj, "apiVersion": resource.api_version}


def stored_form(resource: Resource, obj: Object) -> Object:
    """Return an object in the version in which it is stored."""
    if resource.group == EVENTS:
        return to_core(obj)
    if resource.custom is not None:
        return {**obj, "apiVersion": f"{resource.group}/{resource.custom.storage_version}"}
    return obj


# Events are one store with two faces: core `v1` and `events.k8s.io/v1`, converted field by field; stored as core.
#
# Which face a policy sees matters (the one-time-code scenario reads `message`), so the same conversion serves reads, writes and
# admission with matchPolicy Equivalent.


_PAIRS = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
TO_NEW = dict(_PAIRS)
TO_CORE = {new: core for core, new in _PAIRS}


def to_core(event: Object) -> Object:
    """Return an Event as core `v1` has it."""
    made = {TO_CORE.get(key, key): value for key, value in event.items()}
    made["apiVersion"] = "v1"
    return made


def to_new(event: Object) -> Object:
    """Return an Event as `events.k8s.io/v1` has it."""
    made = {TO_NEW.get(key, key): value for key, value in event.items()}
    made["apiVersion"] = "events.k8s.io/v1"
    return made
