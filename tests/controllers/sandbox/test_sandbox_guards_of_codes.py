"""What people with every right on our kinds try with codes and ends while nothing of ours runs: the API server's guards hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from .serving import Api, run
from .test_sandbox_guards import MERGE, guarded

if TYPE_CHECKING:
    from pathlib import Path

CODES = "/apis/kpolicy.io/v1alpha1/namespaces/default/onetimecodes"
EXCEPTIONS = "/apis/kyverno.io/v2/namespaces/default/policyexceptions"
TTL = "cleanup.kyverno.io/ttl"
FAR = "2099-01-01T00:00:00Z"


def soon(**length: int) -> str:
    return f"{datetime.now(UTC) + timedelta(**length):%Y-%m-%dT%H:%M:%SZ}"


def code(name: str = "code-a", by: str = "bob", **spec: Any) -> dict[str, Any]:
    binding = {"policy": "p", "rules": ["r"], "object": {"kind": "Pod", "namespace": "default", "name": "web"}}  # fmt: skip
    given = {"user": "ada", "issuedBy": by, "expiresAt": soon(hours=1), "verifier": "v", "binding": binding}  # fmt: skip
    return {"apiVersion": "kpolicy.io/v1alpha1", "kind": "OneTimeCode", "metadata": {"name": name}, "spec": {**given, **spec}}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"expiresAt": FAR},
        {"expiresAt": "2026-11-22T00:00:00-99:00"},
        {"expiresAt": "for ever"},
        {"expiresAt": ""},
        {"issuedBy": "cyd"},
        {"user": "bob"},
        {"issuedByGroups": ["system:masters"]},
    ],
)
def test_no_code_is_issued_for_years_or_in_another_s_name(tmp_path: Path, changes: Any) -> None:
    async def test(api: Api) -> None:
        await guarded(api)
        bob = api.as_("bob")
        assert (await bob("POST", CODES, code(**changes)))[0] in (400, 403, 422)
        made = code(**changes)
        made["metadata"]["creationTimestamp"] = "2098-12-31T00:00:00Z"
        assert (await bob("POST", CODES, made))[0] in (400, 403, 422)

    run(tmp_path, test)


def test_a_code_is_neither_changed_nor_voided_in_another_s_name(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await guarded(api)
        bob, ada = api.as_("bob"), api.as_("ada")
        told = {**code(), "status": {"state": "used", "voidedBy": "cyd", "usedBy": "cyd"}}
        status, made = await bob("POST", CODES, told)
        assert (status, made.get("status")) == (201, None)
        place = f"{CODES}/code-a"

        async def patched(who: Any, body: Any, sub: str = "") -> int:
            return int((await who("PATCH", f"{place}{sub}", body, Content_Type=MERGE))[0])

        assert await patched(bob, {"spec": {"expiresAt": FAR}}) == 403
        assert await patched(bob, {"spec": {"user": "bob"}}) == 403
        assert await patched(bob, {"status": {"voidedBy": "cyd"}}) == 200
        assert (await api("GET", place))[1].get("status") is None
        for status_of in (
            {"state": "void", "voidedBy": "cyd"},
            {"voidedBy": "cyd"},
            {"state": "used"},
            {"state": "issued"},
            {"state": "void", "usedBy": "cyd"},
        ):
            assert await patched(bob, {"status": status_of}, "/status") == 403, status_of
        assert (
            await patched(bob, {"status": {"state": "void", "voidedBy": "bob"}}, "/status") == 200
        )
        for status_of in ({"voidedBy": "ada"}, {"voidedBy": None}, {"state": "issued"}):
            assert await patched(ada, {"status": status_of}, "/status") == 403, status_of

    run(tmp_path, test)


def excepted(**labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v2", "kind": "PolicyException", "metadata": {"name": "e", "labels": labels},
        "spec": {"exceptions": [{"policyName": "p", "ruleNames": ["r"]}], "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ("1h", "30m", 200),
        ("1h", "1h", 200),
        ("1h", "90m", 403),
        ("1h", "100h", 403),
        ("1h", None, 403),
        ("1h", "", 403),
        ("1h", "never", 403),
        ("1h", "2099-01-01", 403),
        ("2026-12-01", "2026-11-30", 200),
        ("2026-12-01", "2027-12-01", 403),
        ("2026-12-01", "1h", 403),
    ],
)
def test_an_end_by_label_only_comes_nearer(
    tmp_path: Path, before: str, after: str | None, status: int
) -> None:
    async def test(api: Api) -> None:
        await guarded(api)
        bob = api.as_("bob")
        assert (await bob("POST", EXCEPTIONS, excepted(**{TTL: before})))[0] == 201
        change = {"metadata": {"labels": {TTL: after}}}
        found, _ = await bob("PATCH", f"{EXCEPTIONS}/e", change, Content_Type=MERGE)
        assert found == status
        whole = excepted(**({TTL: after} if after is not None else {}))
        if status != 200:
            assert (await bob("PUT", f"{EXCEPTIONS}/e", whole))[0] in (403, 409, 422)

    run(tmp_path, test)
