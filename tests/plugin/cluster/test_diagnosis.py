"""What `doctor` finds out beyond what is read anyway: clocks, versions, authorities, and whether exceptions count."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from controllers.kube.errors import Forbidden
from kubectl_kpolicy.cluster.cache import ClusterCache
from kubectl_kpolicy.cluster.diagnosis import more_checks
from kubectl_kpolicy.cluster.health import checks

NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)


class Server:
    def __init__(self, *deployments: dict[str, Any], minor: str = "32", error: Exception | None = None) -> None:  # fmt: skip
        self.deployments, self.minor, self.error = deployments, minor, error

    async def raw(self, *_: str) -> Any:
        if self.error is not None:
            raise self.error
        return {"gitVersion": f"v1.{self.minor}.0", "minor": self.minor}

    async def list_all(self, *_: Any, **__: Any) -> Any:
        if self.error is not None:
            raise self.error

        class Page:
            items = self.deployments

        return Page


def found(server: Server, world: ClusterCache | None = None, skew: float = 0.0) -> dict[str, str]:
    made = asyncio.run(more_checks(server, world or ClusterCache(), skew, NOW))  # type: ignore[arg-type] # a stand-in
    return {one.name: one.status for one in made}


def deployment(*args: str) -> dict[str, Any]:
    return {"metadata": {"name": "admission", "namespace": "kyverno"}, "spec": {"template": {"spec": {"containers": [{"args": list(args)}]}}}}  # fmt: skip


def hooks(end: datetime | None = None, **annotations: str) -> ClusterCache:
    client = {"caBundle": base64.b64encode(authority(end)).decode() if end else "bm9uZQ=="}
    hook = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "kyverno-x", "annotations": {key.replace("__", "/"): value for key, value in annotations.items()}}, "webhooks": [{"clientConfig": client}]}  # fmt: skip
    world = ClusterCache()
    world.replace("validatingwebhooks", [hook], NOW)
    return world


def authority(end: datetime) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1).not_valid_before(end - timedelta(days=365)).not_valid_after(end)  # fmt: skip
    from cryptography.hazmat.primitives.serialization import Encoding

    return made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


@pytest.mark.parametrize(("skew", "status"), [(0.0, "ok"), (4.9, "ok"), (-4.9, "ok"), (6.0, "warn"), (-3600.0, "warn")])  # fmt: skip
def test_clocks_may_differ_by_five_seconds(skew: float, status: str) -> None:
    assert found(Server(), skew=skew)["clock"] == status


@pytest.mark.parametrize(("minor", "status"), [("32", "ok"), ("28+", "ok"), ("27", "warn"), ("", "ok")])  # fmt: skip
def test_a_server_that_does_not_know_its_people_is_named(minor: str, status: str) -> None:
    assert found(Server(minor=minor))["server"] == status


@pytest.mark.parametrize(("days", "status"), [(-1, "fail"), (10, "warn"), (200, "ok")])
def test_an_authority_that_ends_soon_is_seen_before_it_does(days: int, status: str) -> None:
    assert found(Server(), hooks(NOW + timedelta(days=days)))["authority"] == status


def test_a_bundle_that_is_none_is_no_failure_of_the_doctor() -> None:
    assert "authority" not in found(Server(), hooks())


@pytest.mark.parametrize(
    ("args", "owner", "status"),
    [
        ((), {}, "fail"),
        (("--exceptionNamespace=*",), {}, "ok"),
        (("--exceptionNamespace=apps",), {}, "warn"),
        (("--exceptionNamespace=*", "--enablePolicyException=false"), {}, "fail"),
        (("-enablePolicyException", "--exceptionNamespace=*"), {}, "ok"),
        ((), {"kpolicy.io__owner": "kpolicy"}, "ok"),
    ],
)
def test_whether_exceptions_count_is_told_by_the_engine_s_flags(args, owner, status: str) -> None:
    assert found(Server(deployment(*args)), hooks(**owner))["exceptions"] == status


def test_what_may_not_be_read_is_unknown() -> None:
    made = found(Server(error=Forbidden("no", status=403)))
    assert (made["server"], made["exceptions"]) == ("unknown", "unknown")


def test_counts_of_codes_are_no_leases_that_anybody_renews() -> None:
    world = ClusterCache()
    lease = {"metadata": {"name": "kpolicy-codes-x", "labels": {"kpolicy.io/kind": "codes"}}, "spec": {"holderIdentity": "kpolicy"}}  # fmt: skip
    world.replace("leases", [lease], NOW)
    assert not [one for one in checks(world, NOW) if one.name.startswith("lease")]


RELYING = {
    "metadata": {"name": "templates"},
    "spec": {
        "rules": [
            {
                "name": "r",
                "context": [{"name": "cm", "configMap": {"name": "texts", "namespace": "a"}}],
                "validate": {"message": "see {{ cm.data.text }}", "deny": {}},
            }
        ]
    },
}


@pytest.mark.parametrize(
    ("annotations", "args", "policies", "status", "words"),
    [
        ({"kpolicy.io__owner": "x"}, [], [], "ok", "values are data"),
        ({"kpolicy.io__owner": "x"}, [], [RELYING], "warn", "may decide otherwise"),
        ({"kpolicy.io__owner": "x"}, ["--resolve-values"], [], "warn", "reads values"),
        ({}, [], [RELYING], "warn", "Kyverno reads values"),
    ],
)
def test_whether_values_are_read_as_expressions_is_said(
    annotations: dict[str, str], args: list[str], policies: list[Any], status: str, words: str
) -> None:
    world = hooks(None, **annotations)
    world.replace("clusterpolicies", policies, NOW)
    made = asyncio.run(more_checks(Server(deployment(*args)), world, 0.0, NOW))  # type: ignore[arg-type] # a stand-in
    [check] = [one for one in made if one.name == "values"]
    assert check.status == status
    assert words in check.detail
    assert ("templates/r" in check.detail) is ("may decide" in words)


def called(mode: str, *policies: dict[str, Any], strict: bool = False) -> ClusterCache:
    world = hooks(kpolicy__io="x")
    annotations = {"kpolicy.io/owner": "kpolicy", **({"kpolicy.io/callers": mode} if mode else {})}
    hook = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "kyverno-x", "annotations": annotations}, "webhooks": []}  # fmt: skip
    world.replace("validatingwebhooks", [hook], NOW)
    world.replace("clusterpolicies", list(policies), NOW)
    codes = {"mode": "acknowledge", "strict": strict}
    world.replace("grantpolicies", [{"metadata": {"name": "default"}, "spec": {"codes": codes}}], NOW)  # fmt: skip
    return world


def generating(name: str, **match: Any) -> dict[str, Any]:
    rule = {"name": "make", "match": {"any": [{"resources": {"kinds": ["Namespace"]}, **match}]}, "generate": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": "y", "data": {}}}  # fmt: skip
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": name}, "spec": {"rules": [rule]}}  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "status"),
    [("certificate", "ok"), ("trusted path", "warn"), ("path", "warn"), ("nobody", "fail"), ("", "unknown"), ("x", "unknown")],
)  # fmt: skip
def test_it_is_told_how_callers_are_known(mode: str, status: str):
    made = found(Server(), called(mode, strict=True))
    assert made["callers"] == status
    assert "callers: rules" not in made
    assert "callers: codes" not in made


def test_what_is_not_done_because_callers_prove_nothing_is_named():
    who = generating("by-whom", subjects=[{"kind": "User", "name": "root"}])
    world = called("path", who, generating("plain"))
    told = {one.name: one.detail for one in asyncio.run(more_checks(Server(), world, 0.0, NOW))}  # type: ignore[arg-type] # a stand-in
    assert told["callers: rules"].endswith(": by-whom/make (who asks)")
    assert told["callers: codes"].endswith(": default")
    assert "callers: rules" not in found(Server(), called("certificate", who))


@pytest.mark.parametrize(
    ("image", "annotations", "status"),
    [
        ("own/kpolicy:1", {"kpolicy.io__owner": "x"}, ["warn"]),
        (f"own/kpolicy@sha256:{'a' * 64}", {"kpolicy.io__owner": "x"}, ["ok"]),
        ("ghcr.io/kyverno/kyverno:v1", {}, []),
    ],
)
def test_an_image_by_tag_is_said(
    image: str, annotations: dict[str, str], status: list[str]
) -> None:
    made = deployment()
    made["spec"]["template"]["spec"]["containers"][0]["image"] = image
    found = asyncio.run(more_checks(Server(made), hooks(None, **annotations), 0.0, NOW))  # type: ignore[arg-type] # a stand-in
    assert [one.status for one in found if one.name == "image"] == status
    assert not any("NAME" in one.fix for one in found if one.fix.startswith("kubectl "))
