"""A small cluster as a ClusterCache, for tests and pictures of the console: one of everything that a screen can show, at a fixed instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kubectl_kpolicy.cluster.cache import ClusterCache, Problem, Trouble
from kubectl_kpolicy.cluster.resources import RESOURCES

NOW = datetime(2026, 3, 14, 12, 0, tzinfo=UTC)


def ago(**length: float) -> str:
    return (NOW - timedelta(**length)).strftime("%Y-%m-%dT%H:%M:%SZ")


def ahead(**length: float) -> str:
    return (NOW + timedelta(**length)).strftime("%Y-%m-%dT%H:%M:%SZ")


def meta(name: str, namespace: str = "", created: str = "", **more: Any) -> dict[str, Any]:
    made = {
        "name": name,
        "creationTimestamp": created or ago(days=3),
        "uid": f"uid-{namespace}-{name}",
    }
    return {**made, **({"namespace": namespace} if namespace else {}), **more}


def result(policy: str, rule: str, status: str, severity: str, message: str, **more: Any):
    seconds = int((NOW - timedelta(minutes=more.pop("minutes", 12))).timestamp())
    return {
        "policy": policy, "rule": rule, "result": status, "severity": severity, "message": message,
        "source": "kyverno", "category": more.pop("category", "Pod Security Standards"), "scored": True,
        "timestamp": {"seconds": seconds, "nanos": 0}, **more,
    }  # fmt: skip


def report(kind: str, name: str, namespace: str, *results: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "wgpolicyk8s.io/v1alpha2",
        "kind": "PolicyReport" if namespace else "ClusterPolicyReport",
        "metadata": meta(f"uid-{namespace}-{name}".lower(), namespace),
        "scope": {"apiVersion": "apps/v1", "kind": kind, "name": name, "namespace": namespace, "uid": "u"},
        "results": list(results),
    }  # fmt: skip


def policy(
    name: str,
    action: str,
    severity: str,
    rules: list[str],
    *,
    ready: bool = True,
    namespace: str = "",
):
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "Policy" if namespace else "ClusterPolicy",
        "metadata": meta(name, namespace, annotations={
            "policies.kyverno.io/severity": severity,
            "policies.kyverno.io/category": "Pod Security Standards",
        }),
        "spec": {
            "background": True,
            "rules": [{"name": rule, "validate": {"failureAction": action, "message": "m"}} for rule in rules],
        },
        "status": {"conditions": [{"type": "Ready", "status": str(ready), "message": "Ready" if ready else "rule 1: no such operator"}]},
    }  # fmt: skip


def exception(
    name: str,
    namespace: str,
    policy_name: str,
    rules: list[str],
    names: list[str],
    **annotations: str,
):
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": meta(name, namespace, annotations={f"kpolicy.io/{key.replace('_', '-')}": value for key, value in annotations.items()}),
        "spec": {
            "exceptions": [{"policyName": policy_name, "ruleNames": rules}],
            "match": {"any": [{"resources": {"kinds": ["Deployment", "Pod"], "names": names, "namespaces": [namespace]}}]},
        },
    }  # fmt: skip


def grant(name: str, state: str, requester: str, **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1",
        "kind": "Grant",
        "metadata": meta(name, "payments", status.pop("created", ago(minutes=20))),
        "spec": {
            "policy": "require-run-as-nonroot", "rules": ["run-as-non-root"],
            "target": {"kind": "Deployment", "name": status.pop("target", "web")},
            "requester": requester, "reason": status.pop("reason", "image rebuilt on Monday, customer down"),
            "duration": status.pop("length", "4h"), "ticket": status.pop("ticket", "OPS-4711"),
            **status.pop("spec", {}),
        },
        "status": {"state": state, **status},
    }  # fmt: skip


def block(
    name: str, count: int, minutes: int, text: str, policy_name: str, user: str = ""
) -> dict[str, Any]:
    noted = {"annotations": {"kpolicy.io/user": user}} if user else {}
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": meta(name, "default", ago(minutes=minutes + 3), **noted),
        "involvedObject": {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "name": policy_name},
        "reason": "PolicyViolation", "action": "Resource Blocked", "type": "Warning", "count": count, "message": text,
        "source": {"component": "kyverno-admission"}, "firstTimestamp": ago(minutes=minutes + 3), "lastTimestamp": ago(minutes=minutes),
    }  # fmt: skip


def audit_record(
    seq: int, verb: str, actor: str, name: str, outcome: str, reason: str = ""
) -> dict[str, Any]:
    return {
        "seq": seq, "time": ago(minutes=60 - seq * 4), "actor": actor, "verb": verb, "result": outcome, "reason": reason,
        "object": {"kind": "Grant", "namespace": "payments", "name": name}, "hash": f"{seq * 7919:064x}",
    }  # fmt: skip


def ttl_object(kind: str, name: str, namespace: str, value: str, created: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind,
            "metadata": meta(name, namespace, created, labels={"cleanup.kyverno.io/ttl": value})}  # fmt: skip


NONROOT = (
    "Running as root is not allowed. The field securityContext.runAsNonRoot must be set to true."
)
HOST = "Sharing the host namespaces is disallowed."


def objects() -> dict[str, list[dict[str, Any]]]:
    """Return the objects of the scene by resource."""
    return {
        "reports": [
            report("Deployment", "web", "payments",
                   result("require-run-as-nonroot", "run-as-non-root", "fail", "high", NONROOT),
                   result("disallow-latest-tag", "validate-image-tag", "warn", "medium", "Using a mutable image tag e.g. 'latest' is not allowed.", minutes=200),
                   result("require-labels", "check-team", "pass", "low", "validation rule 'check-team' passed.")),
            report("Pod", "debug-shell", "payments",
                   result("disallow-host-namespaces", "host-namespaces", "fail", "critical", HOST, minutes=2),
                   result("require-run-as-nonroot", "run-as-non-root", "fail", "high", NONROOT, minutes=2)),
            report("Deployment", "検索-api", "search",
                   result("require-run-as-nonroot", "run-as-non-root", "skip", "high", "rule is skipped due to policy exception", properties={"exceptions": "search-legacy"}),
                   result("restrict-image-registries", "validate-registries", "error", "medium", 'failed to load context: Get "https://registry.example": timeout', minutes=3000)),
            report("StatefulSet", "ledger", "ledger",
                   result("require-labels", "check-team", "fail", "low", "The label `team` is required.", minutes=9000, category="Best Practices")),
        ],
        "clusterreports": [
            report("Namespace", "sandbox", "", result("add-pss-labels", "baseline", "fail", "", "Namespaces must carry a Pod Security label.", minutes=30)),
        ],
        "openreports": [], "clusteropenreports": [],
        "clusterpolicies": [
            policy("require-run-as-nonroot", "Enforce", "high", ["run-as-non-root"]),
            policy("disallow-host-namespaces", "Enforce", "critical", ["host-namespaces"]),
            policy("disallow-latest-tag", "Audit", "medium", ["require-image-tag", "validate-image-tag"]),
            policy("restrict-image-registries", "Audit", "medium", ["validate-registries"], ready=False),
            policy("require-labels", "Audit", "low", ["check-team"]),
        ],
        "policies": [policy("quota-guard", "Audit", "low", ["limits"], namespace="ledger")],
        "exceptions": [
            exception("search-legacy", "search", "require-run-as-nonroot", ["run-as-non-root"], ["*"]),
            exception("web-hotfix", "payments", "require-run-as-nonroot", ["run-as-non-root"], ["web*"], expires_at=ahead(minutes=12, seconds=41), reason="image rebuilt on Monday", ticket="OPS-4711", requester="alice"),
            exception("old-migration", "ledger", "disallow-privileged", ["privileged"], ["migrate"], expires_at=ago(days=2)),
        ],
        "uses": [],
        "cleanuppolicies": [],
        "clustercleanuppolicies": [
            {"apiVersion": "kyverno.io/v2", "kind": "ClusterCleanupPolicy", "metadata": meta("bare-pods"),
             "spec": {"schedule": "*/30 * * * *", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}}, "status": {"lastExecutionTime": ago(minutes=25)}},
        ],
        "ttl": [
            ttl_object("Job", "pi", "batch", "15m", ago(minutes=9)),
            ttl_object("Namespace", "env-volee", "", "2026-03-15", ago(days=1)),
            ttl_object("ConfigMap", "broken", "batch", "soon", ago(days=1)),
        ],
        "grantpolicies": [],
        "grants": [
            grant("web-nonroot", "active", "alice", created=ago(hours=3, minutes=48), expiresAt=ahead(minutes=12, seconds=41), uses=3, spec={"decisions": [{"by": "bob", "verdict": "approve", "comment": "agreed on the phone"}]}),
            grant("debug-shell", "pending", "carol", created=ago(minutes=6), approvalDeadline=ahead(minutes=54), target="debug-shell", length="8h", ticket="", reason="reproduce the crash of 11:40", reach={"flips": 2}),
            grant("ledger-weekend", "scheduled", "dave", expiresAt=ahead(days=2), spec={"startAt": ahead(hours=9)}, target="ledger"),
            grant("yesterday", "expired", "alice", created=ago(days=1, hours=5), expiresAt=ago(days=1), target="web-canary"),
            grant("night-shift", "revoked", "erin", created=ago(days=2), spec={"emergency": True}, target="ingress", reason="sev1: ingress loops"),
        ],
        "codes": [
            {"apiVersion": "kpolicy.io/v1alpha1", "kind": "OneTimeCode", "metadata": meta("otc-7f3a", "kyverno", ago(minutes=4)),
             "spec": {"user": "carol", "issuedBy": "bob", "expiresAt": ahead(minutes=11), "binding": {"policy": "disallow-host-namespaces", "rules": ["host-namespaces"], "object": {"kind": "Pod", "name": "debug-shell"}}},
             "status": {"state": "issued", "uses": 0, "tries": 1}},
            {"apiVersion": "kpolicy.io/v1alpha1", "kind": "OneTimeCode", "metadata": meta("otc-19bc", "kyverno", ago(hours=5)),
             "spec": {"user": "alice", "issuedBy": "bob", "expiresAt": ago(hours=4), "binding": {"policy": "require-run-as-nonroot", "rules": ["run-as-non-root"], "object": {"kind": "Deployment", "name": "web"}}},
             "status": {"state": "confirmed", "uses": 1, "usedBy": "alice", "usedAt": ago(hours=4, minutes=40)}},
        ],
        "codeuses": [],
        "journal": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("otp", "platform"),
             "data": {"codes": f"- ua8v92pg\n- 9akvm2o7-{ago(hours=1)}-kubernetes-admin"}},
        ],
        "auditsegments": [
            {"apiVersion": "kpolicy.io/v1alpha1", "kind": "AuditSegment", "metadata": meta("audit-000001", "kyverno"),
             "spec": {"records": [
                 audit_record(1, "request", "alice", "web-nonroot", "ok", "image rebuilt on Monday, customer down"),
                 audit_record(2, "approve", "bob", "web-nonroot", "ok", "agreed on the phone"),
                 audit_record(3, "activate", "system:serviceaccount:kyverno:kpolicy", "web-nonroot", "ok"),
                 audit_record(4, "approve", "carol", "debug-shell", "denied", "own request"),
             ]}},
        ],
        "events": [
            block("host.1", 3, 2, f"Pod payments/debug-shell: [host-namespaces] fail (blocked); {HOST}", "disallow-host-namespaces", "carol"),
            block("root.1", 1, 41, f"Deployment search/indexer: [run-as-non-root] fail (blocked); {NONROOT}", "require-run-as-nonroot"),
            block("audit.1", 1, 5, f"Deployment payments/web: [run-as-non-root] fail; {NONROOT}", "require-run-as-nonroot"),
        ],
        "validatingwebhooks": [
            {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
             "metadata": meta("kyverno-resource-validating-webhook-cfg", annotations={"kpolicy.io/owner": "kpolicy"}),
             "webhooks": [{"name": "validate.kyverno.svc-fail", "clientConfig": {"caBundle": "Q0E="}}]},
        ],
        "mutatingwebhooks": [],
        "leases": [
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta("kpolicy", "kyverno"),
             "spec": {"holderIdentity": "kpolicy-0", "renewTime": ago(seconds=3)}},
        ],
        "crds": [],
    }  # fmt: skip


def world(
    found: dict[str, list[dict[str, Any]]] | None = None,
    *,
    without: tuple[str, ...] = (),
    trouble: Trouble = Trouble.FORBIDDEN,
) -> ClusterCache:
    """Return the scene, or other objects, with everything read but what there is to be trouble with."""
    made = ClusterCache()
    given = objects() if found is None else found
    for name in (*RESOURCES, "celpolicies", "celexceptions", "ttl", "journal"):
        if name in without:
            made.hindered(name, problem_with(name, trouble))
        else:
            made.replace(name, given.get(name, ()), NOW)
    return made


def hindered(trouble: Trouble, *names: str) -> ClusterCache:
    """Return a ClusterCache in which resources cannot be read; all of them unless some are named."""
    made = ClusterCache()
    for name in names or RESOURCES:
        made.hindered(name, problem_with(name, trouble))
    return made


def problem_with(name: str, trouble: Trouble) -> Problem:
    text = {
        Trouble.FORBIDDEN: f"you may not list {RESOURCES[name].kind}",
        Trouble.MISSING: f"the server has no {RESOURCES[name].kind}",
    }
    return Problem(trouble, text.get(trouble, "no answer within 10 s"), "kubectl auth can-i --list")
