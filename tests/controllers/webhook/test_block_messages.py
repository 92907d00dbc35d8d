"""Block messages byte for byte, and YAML scalars as Go's library writes them."""

from __future__ import annotations

from controllers.webhook.verdicts import blocked_message, failures_of, warnings_of
from engine.model import Review, RuleResult, RuleType, Status, review_of

OTP = (
    "validation error: Sharing the host namespaces is disallowed. The fields spec.hostNetwork, spec.hostIPC, and"
    ' spec.hostPID must be unset or set to `false`. To get around this, you may use a one-time pass code "4y4jwr3j"'
    ' assigned as the value of a label with key "otp". Use of this code will be recorded along with your username.'
    " rule host-namespaces-otp failed at path /spec/template/spec/hostIPC/"
)


def deployment() -> Review:
    return review_of({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "busybox", "namespace": "default"}})  # fmt: skip


def result(policy: str, rule: str, status: Status, message: str = "no") -> RuleResult:
    return RuleResult(policy, rule, RuleType.VALIDATION, status, message)


def test_the_published_one_time_code_denial_is_met_byte_for_byte() -> None:
    made = blocked_message(deployment(), {"disallow-host-namespaces-otp": {"host-namespaces-otp": OTP}})  # fmt: skip

    assert made == (
        "\n\nresource Deployment/default/busybox was blocked due to the following policies \n\n"
        "disallow-host-namespaces-otp:\n"
        f"  host-namespaces-otp: '{OTP}'\n"
    )


def test_a_cluster_scoped_object_leaves_its_namespace_empty() -> None:
    review = review_of({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "plain"}})

    assert "resource Namespace//plain was" in blocked_message(review, {"p": {"r": "m"}})


def test_messages_without_syntax_stand_plain() -> None:
    text = "The code uq1s17g8 is invalid or has already been used."

    assert blocked_message(deployment(), {"p": {"r": text}}).endswith(f"\np:\n  r: {text}\n")


def test_only_what_is_neither_pass_nor_skip_is_listed_and_only_of_enforcing_policies() -> None:
    results = [
        result("a", "one", Status.PASS),
        result("a", "two", Status.SKIP),
        result("a", "three", Status.ERROR),
        result("shop/b", "four", Status.FAIL),
        result("c", "five", Status.FAIL),
    ]

    assert failures_of(results, frozenset({"a", "shop/b"})) == {
        "a": {"three": "no"},
        "b": {"four": "no"},
    }


def test_warnings_name_policy_and_rule() -> None:
    results = [result("a", "one", Status.PASS), result("shop/b", "two", Status.FAIL, "bad")]

    assert warnings_of(results) == ["policy b.two: bad"]
