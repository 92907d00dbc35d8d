"""A real API server on loopback: etcd, kube-apiserver with RBAC, and kube-controller-manager.

It speaks to webhooks with a client certificate, as a cluster does whose administrators have set one for its admission
plugins, so that webhooks can tell it from everybody else.
"""

from __future__ import annotations

import json
import ssl
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controllers.manifests.deploy import CLIENT_NAME

from .keys import Authority, Pair, signing_key
from .processes import Process, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .binaries import Binaries

ADDRESS = "127.0.0.1"
AUDIT_LOG = "audit.log"
WEBHOOK_CLIENT = CLIENT_NAME
_PLUGINS = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")


@dataclass(frozen=True, slots=True)
class RealServer:
    """A running server. `kubeconfig` is an administrator's; `webhook_client` is who asks webhooks."""

    url: str
    kubeconfig: Path
    authority: Path
    webhook_client: Pair
    programs: dict[str, Process] = field(default_factory=dict)

    def is_ready(self) -> bool:
        """Tell whether it answers, etcd behind it included; raises OSError where nobody does."""
        return _answers(
            f"{self.url}/readyz", ssl.create_default_context(cafile=str(self.authority))
        )


@contextmanager
def real_server(binaries: Binaries, folder: Path, runtime_config: str = "") -> Iterator[RealServer]:
    """Run a server whose data are in `folder`; everything ends with the block.

    `runtime_config` names APIs that it serves besides its own choice, such as `admissionregistration.k8s.io/v1beta1=true`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    client, peer, port, manager_port = free_ports(4)
    started: list[Process] = []
    try:
        started.append(_etcd(binaries, folder, client, peer))
        authority = Authority(folder)
        tokens = signing_key(folder)
        url = f"https://{ADDRESS}:{port}"
        webhook_client = authority.user(WEBHOOK_CLIENT)
        admission = admission_configuration(folder, webhook_client)
        front = _front_proxy(folder)
        serving = authority.server(
            "apiserver", ADDRESS, "localhost", "10.0.0.1", "kubernetes.default.svc"
        )
        server = Process(
            "kube-apiserver",
            [
                binaries.apiserver,
                f"--etcd-servers=http://{ADDRESS}:{client}",
                f"--bind-address={ADDRESS}",
                f"--advertise-address={ADDRESS}",
                f"--secure-port={port}",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--allow-privileged=true",
                "--authorization-mode=RBAC",
                f"--tls-cert-file={serving.certificate}",
                f"--tls-private-key-file={serving.key}",
                f"--client-ca-file={authority.pair.certificate}",
                f"--service-account-issuer={url}/",
                f"--service-account-key-file={tokens.certificate}",
                f"--service-account-signing-key-file={tokens.key}",
                f"--admission-control-config-file={admission}",
                "--endpoint-reconciler-type=none",
                *front,
                f"--audit-policy-file={_audit_policy(folder)}",
                f"--audit-log-path={folder / AUDIT_LOG}",
                *([f"--runtime-config={runtime_config}"] if runtime_config else []),
            ],
            folder,
        )
        started.append(server)
        made = RealServer(
            url, folder / "admin.kubeconfig", authority.pair.certificate, webhook_client
        )
        server.wait_until(made.is_ready)
        write_kubeconfig(
            made.kubeconfig, made, authority.user("kubernetes-admin", "system:masters")
        )
        started.append(_manager(binaries, folder, made, authority, tokens, manager_port))
        made.programs.update({one.name: one for one in started})
        yield made
    finally:
        for process in reversed(started):
            process.stop()


def _front_proxy(folder: Path) -> list[str]:
    """Return the flags by which the server proves itself to aggregated API servers, with an authority for just that."""
    place = folder / "front-proxy"
    place.mkdir()
    authority = Authority(place)
    client = authority.user("front-proxy-client")
    return [
        f"--requestheader-client-ca-file={authority.pair.certificate}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={client.certificate}",
        f"--proxy-client-key-file={client.key}",
    ]


def _etcd(binaries: Binaries, folder: Path, client: int, peer: int) -> Process:
    url = f"http://{ADDRESS}:{client}"
    process = Process(
        "etcd",
        [
            binaries.etcd,
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls=http://{ADDRESS}:{peer}",
            "--unsafe-no-fsync=true",
            "--log-level=warn",
        ],
        folder,
    )
    try:
        process.wait_until(lambda: _answers(f"{url}/health", None))
    except BaseException:
        process.stop()
        raise
    return process


def _manager(
    binaries: Binaries,
    folder: Path,
    server: RealServer,
    authority: Authority,
    tokens: Pair,
    port: int,
) -> Process:
    user = authority.user("system:kube-controller-manager")
    kubeconfig = folder / "controller-manager.kubeconfig"
    write_kubeconfig(kubeconfig, server, user)
    process = Process(
        "kube-controller-manager",
        [
            binaries.controller_manager,
            f"--kubeconfig={kubeconfig}",
            f"--bind-address={ADDRESS}",
            f"--secure-port={port}",
            f"--cert-dir={folder}",
            "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={tokens.key}",
            f"--root-ca-file={server.authority}",
            f"--cluster-signing-cert-file={authority.pair.certificate}",
            f"--cluster-signing-key-file={authority.pair.key}",
            "--namespace-sync-period=30s",
        ],
        folder,
    )
    trusted = ssl.create_default_context()
    trusted.check_hostname = False
    # the manager signs its own certificate, and only whether it answers is asked
    trusted.verify_mode = ssl.CERT_NONE
    try:
        process.wait_until(lambda: _answers(f"https://{ADDRESS}:{port}/healthz", trusted))
    except BaseException:
        process.stop()
        raise
    return process


def admission_configuration(folder: Path, client: Pair) -> Path:
    """Write the configuration by which the server shows webhooks a certificate."""
    kubeconfig = folder / "webhooks.kubeconfig"
    certificate = {"client-certificate": str(client.certificate), "client-key": str(client.key)}
    users = [{"name": "*", "user": certificate}]
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": users}))
    plugin = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(kubeconfig),
    }
    path = folder / "admission.json"
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": name, "configuration": plugin} for name in _PLUGINS],
    }
    path.write_text(json.dumps(configuration))
    return path


def _audit_policy(folder: Path) -> Path:
    """Write who is watched: service accounts of our own namespace, with what they asked for and what they were told."""
    rules = [
        {
            "level": "Metadata",
            "userGroups": ["system:serviceaccounts:kyverno"],
            "omitStages": ["RequestReceived"],
        },
        {"level": "None"},
    ]
    path = folder / "audit.json"
    path.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
    return path


def write_kubeconfig(path: Path, server: RealServer, user: Pair | str) -> None:
    """Write a kubeconfig for a certificate or a token."""
    if isinstance(user, str):
        credentials = {"token": user}
    else:
        credentials = {"client-certificate": str(user.certificate), "client-key": str(user.key)}
    cluster = {"server": server.url, "certificate-authority": str(server.authority)}
    context = {"cluster": "e2e", "user": "user", "namespace": "default"}
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "e2e", "cluster": cluster}],
                "users": [{"name": "user", "user": credentials}],
                "contexts": [{"name": "e2e", "context": context}],
                "current-context": "e2e",
            }
        )
    )
    path.chmod(0o600)


def _answers(url: str, trusted: ssl.SSLContext | None) -> bool:
    with urllib.request.urlopen(url, timeout=2, context=trusted) as answer:
        return bool(answer.status == 200)
