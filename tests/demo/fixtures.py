"""What stands in the sandbox when the console opens on it: people, teams' workloads, policies, limits, timers, exceptions.

Objects are texts as people write them. The workloads come before the policies, as in a cluster that has just got some, so that
reports have something to say; requests, codes and denials are made by `living`, as the people themselves.
"""

from __future__ import annotations

from engine.record import record


@record
class Person:
    """Somebody with a name, and the cluster roles that somebody else has given them."""

    name: str
    does: str
    roles: tuple[str, ...]


ALICE = Person("alice", "runs payments: sees everything, asks for grants, uses codes", ("edit", "kpolicy:codes:redeem", "kpolicy:audit", "demo:look"))  # fmt: skip
BOB = Person("bob", "is on call for security: approves, issues codes, minds timers", ("admin", "kpolicy:codes:issue", "kpolicy:audit", "demo:look", "demo:mind"))  # fmt: skip
CAROL = Person("carol", "runs search", ("edit", "kpolicy:codes:redeem"))
PEOPLE = (ALICE, BOB, CAROL)
NAMESPACES = ("payments", "search", "batch")

ROLES = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "demo:look"}
rules:
- {apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations, mutatingwebhookconfigurations], verbs: [get, list, watch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "demo:mind"}
rules:
- {apiGroups: [kyverno.io], resources: [cleanuppolicies, clustercleanuppolicies, policyexceptions], verbs: [create, patch, update, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: demo:engine-cleans-up
  labels: {rbac.kyverno.io/aggregate-to-cleanup-controller: "true"}
rules:
- {apiGroups: [""], resources: [configmaps, pods], verbs: [get, list, watch, delete]}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch, delete]}
"""

WORKLOADS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: payments, labels: {team: payments}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example.com/web:1.4"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ledger, namespace: payments}
spec:
  selector: {matchLabels: {app: ledger}}
  template:
    metadata: {labels: {app: ledger}}
    spec:
      securityContext: {runAsNonRoot: true}
      containers: [{name: ledger, image: "registry.example.com/ledger:latest"}]
---
apiVersion: v1
kind: Pod
metadata: {name: debug-shell, namespace: payments, labels: {team: payments}}
spec:
  hostPID: true
  securityContext: {runAsNonRoot: true}
  containers: [{name: shell, image: "registry.example.com/tools:3.2"}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: index, namespace: search, labels: {team: search}}
spec:
  serviceName: index
  selector: {matchLabels: {app: index}}
  template:
    metadata: {labels: {app: index}}
    spec: {containers: [{name: index, image: "registry.example.com/index:9"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: crawler, namespace: search}
spec:
  selector: {matchLabels: {app: crawler}}
  template:
    metadata: {labels: {app: crawler}}
    spec:
      securityContext: {runAsNonRoot: true}
      containers: [{name: crawler, image: crawler}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: import-2024, namespace: batch, labels: {cleanup.kyverno.io/ttl: 45m, team: batch}}
spec:
  template:
    spec: {restartPolicy: Never, securityContext: {runAsNonRoot: true}, containers: [{name: import, image: "registry.example.com/import:2"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: feature-flags-old, namespace: payments, labels: {cleanup.kyverno.io/ttl: 8m, team: payments}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: scratch, namespace: batch, labels: {cleanup.kyverno.io/ttl: 2h, team: batch}}
"""

POLICIES = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: no-host-namespaces
  annotations:
    policies.kyverno.io/severity: critical
    policies.kyverno.io/category: Pod Security
    policies.kyverno.io/description: A container that shares the host's processes can read their memory. Use an ephemeral container to debug.
spec:
  rules:
  - name: host-pid
    match: {any: [{resources: {kinds: [Pod], namespaces: [payments, search, batch]}}]}
    validate:
      failureAction: Enforce
      message: Host namespaces are not shared.
      pattern: {spec: {"=(hostPID)": false}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: run-as-nonroot
  annotations:
    policies.kyverno.io/severity: high
    policies.kyverno.io/category: Pod Security
    policies.kyverno.io/description: Set runAsNonRoot in the securityContext of the Pod, and give the image a user.
spec:
  rules:
  - name: non-root
    match: {any: [{resources: {kinds: [Pod], namespaces: [payments, search, batch]}}]}
    validate:
      failureAction: Enforce
      message: Containers do not run as root.
      pattern: {spec: {securityContext: {runAsNonRoot: true}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: no-latest-tag
  annotations: {policies.kyverno.io/severity: medium, policies.kyverno.io/category: Best Practices}
spec:
  rules:
  - name: pinned-tag
    match: {any: [{resources: {kinds: [Pod], namespaces: [payments, search, batch]}}]}
    validate:
      failureAction: Audit
      message: Images carry a tag other than latest.
      pattern: {spec: {containers: [{image: "*:* & !*:latest"}]}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: team-label
  annotations: {policies.kyverno.io/severity: low, policies.kyverno.io/category: Best Practices}
spec:
  rules:
  - name: has-team
    match: {any: [{resources: {kinds: [Deployment, StatefulSet, Job], namespaces: [payments, search, batch]}}]}
    validate:
      failureAction: Audit
      message: The label team says who is asked.
      pattern: {metadata: {labels: {team: "?*"}}}
"""

LIMITS = """\
apiVersion: kpolicy.io/v1alpha1
kind: GrantPolicy
metadata: {name: on-call}
spec:
  namespaces: [payments, search, batch]
  maxDuration: 4h
  approvalTimeout: 1h
  approvers: [{users: [bob]}]
  reason: {minLength: 10}
  limits: {openPerUser: 5}
  emergency: {maxDuration: 30m}
  codes: {mode: acknowledge, duration: 30m}
"""

TIMERS = """\
apiVersion: kyverno.io/v2
kind: CleanupPolicy
metadata: {name: scratch-pods, namespace: batch}
spec:
  schedule: "*/15 * * * *"
  match: {any: [{resources: {kinds: [Pod]}}]}
---
apiVersion: kyverno.io/v2
kind: CleanupPolicy
metadata: {name: old-imports, namespace: batch}
spec:
  schedule: "30 3 * * *"
  match: {any: [{resources: {kinds: [ConfigMap], names: ["import-*"]}}]}
"""

EXCEPTIONS = """\
apiVersion: kyverno.io/v2
kind: PolicyException
metadata:
  name: crawler-hotfix
  namespace: search
  annotations: {kpolicy.io/expires-at: "{in 9m}", kpolicy.io/reason: image is rebuilt tonight, kpolicy.io/ticket: OPS-4711, kpolicy.io/requester: carol}
spec:
  exceptions: [{policyName: no-latest-tag, ruleNames: [pinned-tag, autogen-pinned-tag]}]
  match: {any: [{resources: {kinds: [Deployment], names: [crawler], namespaces: [search]}}]}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: legacy-search, namespace: search}
spec:
  exceptions: [{policyName: run-as-nonroot, ruleNames: [non-root]}]
  match: {any: [{resources: {kinds: [Pod], names: ["legacy-*"], namespaces: [search]}}]}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: moved-away, namespace: payments}
spec:
  exceptions: [{policyName: disallow-capabilities, ruleNames: [adding]}]
  match: {any: [{resources: {kinds: [Pod], names: [proxy], namespaces: [payments]}}]}
"""

SHELL = """\
apiVersion: v1
kind: Pod
metadata: {name: trace-shell, namespace: payments, labels: {team: payments}}
spec:
  hostPID: true
  securityContext: {runAsNonRoot: true}
  containers: [{name: shell, image: "registry.example.com/tools:3.2"}]
"""
"""What alice is denied, and brings through with a code."""

INDEXER = """\
apiVersion: v1
kind: Pod
metadata: {name: reindex, namespace: search, labels: {team: search}}
spec: {containers: [{name: reindex, image: "registry.example.com/index:9"}]}
"""
"""What carol is denied, and asks a grant for."""
