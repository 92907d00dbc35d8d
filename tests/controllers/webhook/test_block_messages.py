"""Block messages byte for byte, and YAML scalars as Go's library writes them."""

from __future__ import annotations

import pytest
import yaml

from controllers.webhook.blocks import blocked_message, failures_of, warnings_of
from controllers.webhook.scalars import scalar
from engine.lang.yaml import load
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


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain words", "plain words"),
        ("a: b", "'a: b'"),
        ("it's a: b", "'it''s a: b'"),
        ("ends with:", "'ends with:'"),
        ("a #b", "'a #b'"),
        ("a#b", "a#b"),
        ("`tick`", "'`tick`'"),
        ("- dash", "'- dash'"),
        ("-dash", "-dash"),
        ("", '""'),
        ("true", '"true"'),
        ("yes", '"yes"'),
        ("null", '"null"'),
        ("~", '"~"'),
        ("1", '"1"'),
        ("1.5", '"1.5"'),
        ("1:30", '"1:30"'),
        ("2026-11-21", '"2026-11-21"'),
        (" leading", "' leading'"),
        ("trailing ", "'trailing '"),
        ("a\tb", '"a\\tb"'),
        ("nul\0", '"nul\\0"'),
        ("umläut ✓", "umläut ✓"),
        ('"quoted"', "'\"quoted\"'"),
        ("{{ x }}", "'{{ x }}'"),
        ("[a]", "'[a]'"),
        ("*star", "'*star'"),
        ("---", "'---'"),
        ("a\nb", "|-\n    a\n    b"),
        ("a\nb\n", "|\n    a\n    b"),
        ("a\n\nb", "|-\n    a\n\n    b"),
        ("a \nb", '"a \\nb"'),
    ],
)
def test_scalars_are_written_as_go_writes_them(text: str, written: str) -> None:
    assert scalar(text, 2) == written


@pytest.mark.parametrize("text", ["a: b", "x\ny: z\n", "it's", "1", "yes", "\ta", "# no", "a\n b", " a\nb", "a\n\n", "!x", "%x", "? a", ": b", "é\u2028x"])  # fmt: skip
def test_what_is_written_reads_back(text: str) -> None:
    document = f"p:\n  r: {scalar(text, 2)}\n"

    assert load(document)["p"]["r"] == text
    assert yaml.safe_load(document)["p"]["r"] == text
