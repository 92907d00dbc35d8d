"""Names of the webhook configurations that the controllers write while they run (row W-01)."""

from __future__ import annotations

from typing import Final

WEBHOOKS: Final = {
    "ValidatingWebhookConfiguration": (
        "kyverno-resource-validating-webhook-cfg",
        "kyverno-policy-validating-webhook-cfg",
        "kyverno-exception-validating-webhook-cfg",
        "kyverno-cel-exception-validating-webhook-cfg",
        "kyverno-global-context-validating-webhook-cfg",
        "kyverno-cleanup-validating-webhook-cfg",
        "kyverno-ttl-validating-webhook-cfg",
        "kpolicy-grant-validating-webhook-cfg",
    ),
    "MutatingWebhookConfiguration": (
        "kyverno-resource-mutating-webhook-cfg",
        "kyverno-policy-mutating-webhook-cfg",
        "kyverno-verify-mutating-webhook-cfg",
    ),
}
