"""A cluster of one node: etcd, API server, controller manager, scheduler, containerd, kubelet and kube-proxy, in this network namespace.

Where machines that are containers themselves differ from servers: limits of memory pressure cannot be lowered, control groups may be of
the first version, connection tracking cannot be set, and the node's name resolves nowhere; each flag that says so has its reason there.
"""

from __future__ import annotations

import json
import ssl
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from tests.e2e.server.keys import TOKENS_KEY, Authority, signing_key
from tests.e2e.server.processes import Process
from tests.e2e.server.real import (
    WEBHOOK_CLIENT,
    RealServer,
    admission_configuration,
    write_kubeconfig,
)
from tests.e2e.tiers import Tier

from .place import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NODE = "node"
NAME = "node-1"
PAUSE = "docker.io/local/pause:1"
_PORT = 6443
_SERVICES = "10.96.0.0/16"
_PODS = "10.20.0.0/24"
_ETCD = "http://127.0.0.1:2379"


class Start(Protocol):
    """Starts a program of the node under its name, with arguments."""

    def __call__(self, name: str, *words: str | Path) -> Process:
        """Return the program that runs."""


class NodeError(Exception):
    """The node did not get ready, or an image could not be brought to it."""


@contextmanager
def node(programs: Path, folder: Path, images: Sequence[Path], mirror: str = "") -> Iterator[Tier]:
    """Run a node whose data are in `folder`, with images imported from OCI archives; everything ends with the block.

    Other images are pulled from the registry at `mirror` (host and port), whatever registry their names say.
    """
    started: list[Process] = []

    def start(name: str, *words: str | Path) -> Process:
        program = programs / name if (programs / name).is_file() else name
        process = Process(name, [program, *words], folder)
        started.append(process)
        return process

    try:
        authority = Authority(folder)
        server = _server(start, folder, authority)
        _controllers(start, folder, authority, server)
        _containers(start, folder, mirror)
        bring(folder, images)
        _kubelet(start, folder, authority, server)
        tier = Tier(NODE, folder, server.kubeconfig, server.authority, "", ("", ""))
        tier.kubectl("wait", "--for=create", f"node/{NAME}", "--timeout=60s")
        tier.kubectl("wait", "--for=condition=Ready", f"node/{NAME}", "--timeout=60s")
        for made in ("serviceaccount/default", "configmap/kube-root-ca.crt"):
            tier.kubectl("wait", "--for=create", made, "-n", "default", "--timeout=60s")
        yield tier
    finally:
        for process in reversed(started):
            process.stop(5)


def bring(folder: Path, images: Sequence[Path]) -> None:
    """Import images from OCI archives; raises NodeError."""
    for image in images:
        _ctr(folder, "images", "import", str(image))


def tag(folder: Path, name: str, *others: str) -> None:
    """Give an image that is there more names, so that nothing is pulled for them."""
    for other in others:
        _ctr(folder, "images", "tag", "--force", name, other)


def _ctr(folder: Path, *words: str) -> str:
    command = ["ctr", "-a", str(folder / "containerd.sock"), "-n", "k8s.io", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NodeError(f"`{' '.join(command[5:])}`: {done.stdout}{done.stderr}")
    return done.stdout


def _server(start: Start, folder: Path, authority: Authority) -> RealServer:
    etcd = start("etcd", f"--data-dir={folder / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn",
                 f"--listen-client-urls={_ETCD}", f"--advertise-client-urls={_ETCD}", "--listen-peer-urls=http://127.0.0.1:2380")  # fmt: skip
    etcd.wait_until(lambda: "200" in _asked("http://127.0.0.1:2379/health"))
    tokens = signing_key(folder)
    serving = authority.server(
        "apiserver", ADDRESS, "127.0.0.1", "10.96.0.1", "kubernetes.default.svc", "kubernetes"
    )
    admin = authority.user("kubernetes-admin", "system:masters")
    url = f"https://{ADDRESS}:{_PORT}"
    process = start(
        "kube-apiserver",
        f"--etcd-servers={_ETCD}",
        "--bind-address=0.0.0.0",
        f"--advertise-address={ADDRESS}",
        f"--secure-port={_PORT}",
        f"--service-cluster-ip-range={_SERVICES}",
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        f"--client-ca-file={authority.pair.certificate}",
        f"--kubelet-client-certificate={admin.certificate}",
        f"--kubelet-client-key={admin.key}",
        # the node's name is in no DNS
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={tokens.certificate}",
        f"--service-account-signing-key-file={tokens.key}",
        f"--admission-control-config-file={admission_configuration(folder, authority.user(WEBHOOK_CLIENT))}",
    )
    trusted = ssl.create_default_context(cafile=str(authority.pair.certificate))
    process.wait_until(lambda: "200" in _asked(f"{url}/readyz", trusted))
    made = RealServer(url, folder / "admin.kubeconfig", authority.pair.certificate, admin)
    write_kubeconfig(made.kubeconfig, made, admin)
    return made


def _controllers(start: Start, folder: Path, authority: Authority, server: RealServer) -> None:
    for name in ("kube-controller-manager", "kube-scheduler"):
        path = folder / f"{name}.kubeconfig"
        write_kubeconfig(path, server, authority.user(f"system:{name}"))
        more: tuple[str, ...] = ()
        if name == "kube-controller-manager":
            key = authority.pair
            more = ("--use-service-account-credentials", f"--service-account-private-key-file={folder / TOKENS_KEY}",
                    f"--root-ca-file={key.certificate}", f"--cluster-signing-cert-file={key.certificate}", f"--cluster-signing-key-file={key.key}")  # fmt: skip
        start(name, f"--kubeconfig={path}", "--leader-elect=false", f"--cert-dir={folder}", *more)


def _containers(start: Start, folder: Path, mirror: str) -> None:
    registries = folder / "registries"
    (registries / "_default").mkdir(parents=True)
    if mirror:
        (registries / "_default" / "hosts.toml").write_text(
            f'[host."http://{mirror}"]\n  capabilities = ["pull", "resolve"]\n'
        )
    network = folder / "cni"
    network.mkdir()
    plugin = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(folder / "cni-addresses"),
            "ranges": [[{"subnet": _PODS}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    made = {"cniVersion": "0.4.0", "name": "pods", "plugins": [plugin]}
    (network / "10-bridge.conflist").write_text(json.dumps(made))
    configuration = folder / "containerd.toml"
    configuration.write_text(
        f"""version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-state"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  # who is in a container may not lower how readily the kernel ends a process
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{registries}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{network}"
"""
    )
    process = start("containerd", "-c", configuration)
    process.wait_until(lambda: _answers(folder), 20)


def _answers(folder: Path) -> bool:
    try:
        return bool(_ctr(folder, "version"))
    except NodeError:
        return False


def _kubelet(start: Start, folder: Path, authority: Authority, server: RealServer) -> None:
    node = authority.user(f"system:node:{NAME}", "system:nodes")
    serving = authority.server("kubelet", ADDRESS, NAME)
    write_kubeconfig(folder / "kubelet.kubeconfig", server, node)
    configuration = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": str(server.authority)}},
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
        "tlsCertFile": str(serving.certificate),
        "tlsPrivateKeyFile": str(serving.key),
        "localStorageCapacityIsolation": False,
        "resolvConf": "",
    }  # fmt: skip
    (folder / "kubelet.json").write_text(json.dumps(configuration))
    start("kubelet", f"--config={folder / 'kubelet.json'}", f"--kubeconfig={folder / 'kubelet.kubeconfig'}",
          f"--root-dir={folder / 'kubelet'}", f"--hostname-override={NAME}", f"--node-ip={ADDRESS}")  # fmt: skip
    write_kubeconfig(folder / "proxy.kubeconfig", server, authority.user("system:kube-proxy"))
    unset = [
        f"--conntrack-{name}=0"
        for name in ("max-per-core", "min", "tcp-timeout-established", "tcp-timeout-close-wait")
    ]
    start("kube-proxy", f"--kubeconfig={folder / 'proxy.kubeconfig'}", "--proxy-mode=nftables", f"--cluster-cidr={_PODS}",
          f"--hostname-override={NAME}", *unset)  # fmt: skip


def _asked(url: str, trusted: ssl.SSLContext | None = None) -> str:
    import urllib.request

    with urllib.request.urlopen(url, timeout=2, context=trusted) as answer:
        return str(answer.status)
