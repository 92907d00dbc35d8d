"""Tokens of the accounts that one process speaks as: asked for when needed, renewed in time, never in place of others."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from controllers.kube import AccessError, Forbidden, connect, load_access
from controllers.kube.access import Access, Impersonation
from controllers.kube.accounts import ACCOUNTS, ALL, LIFE, Accounts, Job, Minted, account_user
from controllers.kube.credentials import Fixed, Presented
from controllers.kube.kinds import CONFIG_MAPS, Kind
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient
from tests.controllers.sandbox.serving import Api, run

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SELF = Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False)


class Issuer:
    """Hands out tokens, numbered; `refusal` is raised instead."""

    def __init__(self, granted: int | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self.granted = granted
        self.refusal: Exception | None = None

    async def create(self, _kind: Any, obj: dict[str, Any], *, subresource: str = "") -> Any:
        assert subresource == "token"
        self.asked.append(obj)
        if self.refusal is not None:
            raise self.refusal
        seconds = self.granted or obj["spec"]["expirationSeconds"]
        return {"spec": {"expirationSeconds": seconds}, "status": {"token": f"t{len(self.asked)}"}}


def minted_by(issuer: Any, name: str = "a") -> Minted:
    return Minted(issuer, "kyverno", name)


def shown(minted: Minted, clock: ManualClock) -> str:
    return asyncio.run(minted.current(clock)).authorization


def test_a_token_is_kept_for_two_thirds_of_its_life_and_then_replaced() -> None:
    issuer, clock = Issuer(), ManualClock(NOW)
    minted = minted_by(issuer, "kpolicy-grants-controller")
    assert issuer.asked == []
    assert shown(minted, clock) == "Bearer t1"
    asyncio.run(clock.advance(LIFE * 2 / 3 - 1))
    assert shown(minted, clock) == "Bearer t1"
    asyncio.run(clock.advance(2))
    assert shown(minted, clock) == "Bearer t2"
    assert issuer.asked[0]["metadata"] == {
        "name": "kpolicy-grants-controller",
        "namespace": "kyverno",
    }


def test_a_server_that_gives_a_shorter_life_is_believed() -> None:
    issuer, clock = Issuer(granted=600), ManualClock(NOW)
    minted = minted_by(issuer)
    shown(minted, clock)
    asyncio.run(clock.advance(401))
    assert shown(minted, clock) == "Bearer t2"


def test_a_token_that_cannot_be_renewed_is_used_to_its_end_and_not_longer() -> None:
    issuer, clock = Issuer(), ManualClock(NOW)
    minted = minted_by(issuer)
    shown(minted, clock)
    issuer.refusal = Forbidden("no", status=403)
    asyncio.run(clock.advance(LIFE - 1))
    assert shown(minted, clock) == "Bearer t1"
    asyncio.run(clock.advance(1))
    with pytest.raises(AccessError, match="no token for the service account `a` in `kyverno`: no"):
        shown(minted, clock)


def test_a_token_that_the_server_refuses_is_asked_for_again() -> None:
    issuer, clock = Issuer(), ManualClock(NOW)
    minted = minted_by(issuer)
    assert minted.spoil() is False
    shown(minted, clock)
    assert minted.spoil() is True
    assert shown(minted, clock) == "Bearer t2"
    assert "t2" not in repr(minted)


def test_many_who_need_a_token_at_once_ask_for_one() -> None:
    issuer, clock = Issuer(), ManualClock(NOW)
    minted = Minted(issuer, "kyverno", "a")

    async def go() -> None:
        await asyncio.gather(*(minted.current(clock) for _ in range(20)))

    asyncio.run(go())
    assert len(issuer.asked) == 1


def test_neither_certificate_nor_impersonation_of_the_process_goes_along() -> None:
    own = Fixed(Presented("", b"certificate", b"key"))
    access = Access("https://10.0.0.1", own, impersonate=Impersonation("boss"))

    async def go() -> None:
        accounts = Accounts.each(FakeClient(), access, "kyverno", ManualClock(NOW))
        for job in ALL - {Job.ADMISSION}:
            client: Any = accounts.of(job)
            assert client.access.impersonate is None
            assert isinstance(client.access.credentials, Minted)
        await accounts.close()

    asyncio.run(go())


def test_a_user_is_told_by_exactly_the_accounts_of_the_namespace() -> None:
    one = Accounts.one(FakeClient(), "kyverno")
    each = Accounts(FakeClient(), {job: FakeClient() for job in ALL - {Job.ADMISSION}}, "kyverno")
    for job in Job:
        assert each.jobs_of(account_user("kyverno", job)) == {job}
    assert each.jobs_of("system:serviceaccount:kyverno:default") == frozenset()
    assert each.jobs_of(account_user("other", Job.GRANTS)) == frozenset()
    assert each.jobs_of("dev", "dev") == {Job.ADMISSION}
    assert one.jobs_of("dev", "dev") == ALL
    assert one.jobs_of("", "") == frozenset()
    assert each.users("dev")[Job.ADMISSION] == "dev"
    assert set(one.users("dev").values()) == {"dev"}


def test_each_job_is_known_to_the_server_as_its_account(tmp_path: Any) -> None:
    async def test(api: Api) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kyverno"}}
        await api.post("/api/v1/namespaces", namespace)
        for name in ACCOUNTS.values():
            account = {"metadata": {"name": name, "namespace": "kyverno"}}
            await api.post("/api/v1/namespaces/kyverno/serviceaccounts", account)
        access = load_access(api.sandbox.kubeconfig)
        clock = ManualClock(NOW)
        client = connect(access)
        accounts = Accounts.each(client, access, "kyverno", clock)
        try:
            await accounts.prove(clock)
            for job in ALL - {Job.ADMISSION}:
                status = await accounts.of(job).review(SELF, {})
                assert status["userInfo"]["username"] == account_user("kyverno", job)
                with pytest.raises(Forbidden):
                    await accounts.of(job).get(CONFIG_MAPS, "kube-root-ca.crt", "kyverno")
        finally:
            await accounts.close()
            await client.close()

    run(tmp_path, test)


def test_a_cluster_without_the_accounts_is_told_of_in_one_sentence(tmp_path: Any) -> None:
    async def test(api: Api) -> None:
        access = load_access(api.sandbox.kubeconfig)
        clock = ManualClock(NOW)
        client = connect(access)
        accounts = Accounts.each(client, access, "kyverno", clock)
        try:
            with pytest.raises(AccessError) as caught:
                await accounts.prove(clock)
        finally:
            await accounts.close()
            await client.close()
        assert caught.value.message.startswith(
            "cannot speak as the account of background: no token"
        )
        assert "--accounts=own" in (caught.value.help or "")

    run(tmp_path, test)
