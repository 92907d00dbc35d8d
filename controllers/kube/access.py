"""How to reach an API server: from a kubeconfig, or from inside a cluster.

For everybody who needs a Client and is not handed one: `controllers.kube.connect` makes one of what `load_access` found.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import credentials
from .credentials import Credentials, Fixed, Presented, TokenFile
from .errors import AccessError
from .kubeconfig import Entry, KubeConfig, default_paths, no_kubeconfig, read_kubeconfig

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Tls:
    """Whom to trust, PEM; without `authorities` those of the system."""

    authorities: bytes = field(default=b"", repr=False)
    server_name: str = ""
    verifies: bool = True


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom to act as; the server asks whether we may."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """Everything needed for a connection. `namespace` is the context's, for people's tools."""

    server: str
    credentials: Credentials = field(default=Fixed(), repr=False)
    tls: Tls = Tls()
    namespace: str = "default"
    context: str = ""
    proxy: str = ""
    impersonate: Impersonation | None = None


def load_access(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    *,
    cluster: str | None = None,
    user: str | None = None,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """Return how to reach the server, as kubectl would find it.

    That is the named kubeconfig, those of `$KUBECONFIG`, the one at home, or the service account of a Pod, in this order;
    `context`, `cluster` and `user` choose other entries than the current ones. Raises AccessError.
    """
    paths = [Path(kubeconfig)] if kubeconfig else default_paths(environment)
    if paths:
        return _from_kubeconfig(read_kubeconfig(paths), context, cluster, user)
    if environment.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").exists():
        return _in_cluster(environment, service_account)
    raise no_kubeconfig(environment)


def _in_cluster(environment: Mapping[str, str], folder: Path) -> Access:
    """Return a Pod's access, found by the `kubernetes` package.

    Its token is not taken: the package keeps the line break of a file in the header, and asks the clock of the machine.
    """
    from kubernetes.client import Configuration
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.incluster_config import InClusterConfigLoader

    found, token = Configuration(), folder / "token"
    make: Any = InClusterConfigLoader
    try:
        make(str(token), str(folder / "ca.crt"), environ=environment).load_and_set(found)
        authorities = (folder / "ca.crt").read_bytes()
        namespace = (folder / "namespace").read_text().strip()
    except ConfigException as error:
        said = str(error).rstrip(".").lower()
        raise AccessError(f"cannot use the service account in `{folder}`: {said}") from error
    except OSError as error:
        raise AccessError(f"cannot read the service account in `{folder}`") from error
    return Access(
        found.host, TokenFile(token), Tls(authorities), namespace or "default", context="in-cluster"
    )


def _from_kubeconfig(
    config: KubeConfig, context: str | None, cluster: str | None, user: str | None
) -> Access:
    name = context or config.current
    where = ", ".join(f"`{path}`" for path in config.files)
    if not name and not cluster:
        raise AccessError(f"no context is current in {where}", help="name one with --context")
    chosen = config.contexts.get(name)
    if chosen is None and name:
        raise AccessError(
            f"there is no context `{name}` in {where}",
            help=f"there are: {', '.join(sorted(config.contexts)) or 'none'}",
        )
    cluster_name = cluster or (chosen.text("cluster") if chosen else "")
    server = config.clusters.get(cluster_name)
    if server is None or not server.text("server"):
        raise AccessError(f"there is no cluster `{cluster_name}` in {where}")
    user_name = user or (chosen.text("user") if chosen else "")
    person = config.users.get(user_name)
    if person is None and user_name:
        raise AccessError(f"there is no user `{user_name}` in {where}")
    return Access(
        _address(server),
        _credentials(person, server) if person else Fixed(),
        _tls(server),
        (chosen.text("namespace") if chosen else "") or "default",
        name,
        server.text("proxy-url"),
        _impersonation(person) if person else None,
    )


def _address(server: Entry) -> str:
    address = server.text("server").rstrip("/")
    if not address.startswith(("https://", "http://")):
        address = f"https://{address}"
    return address


def _tls(server: Entry) -> Tls:
    return Tls(
        server.data("certificate-authority"),
        server.text("tls-server-name"),
        server.value.get("insecure-skip-tls-verify") is not True,
    )


def _credentials(person: Entry, server: Entry) -> Credentials:
    """Return the credentials of a kubeconfig's user, in kubectl's order of preference."""
    plugin = person.value.get("exec")
    provider = person.value.get("auth-provider")
    certificate, key = person.data("client-certificate"), person.data("client-key")
    token_path = person.path("tokenFile")
    if person.text("token"):
        return Fixed(Presented(f"Bearer {person.text('token')}", certificate, key))
    if token_path is not None:
        return TokenFile(token_path)
    if isinstance(plugin, dict):
        return credentials.exec_plugin(plugin, person.file.parent, server)
    if isinstance(provider, dict):
        return credentials.auth_provider(provider, person.file.parent)
    if person.text("username"):
        return credentials.basic(person.text("username"), person.text("password"))
    return Fixed(Presented("", certificate, key))


def _impersonation(person: Entry) -> Impersonation | None:
    if not person.text("as"):
        return None
    extra = person.value.get("as-user-extra")
    pairs = extra.items() if isinstance(extra, dict) else ()
    return Impersonation(
        person.text("as"),
        tuple(str(group) for group in person.value.get("as-groups") or ()),
        person.text("as-uid"),
        tuple((str(key), str(value)) for key, values in pairs for value in values or ()),
    )
