"""Log-ins by the `kubernetes` package, and for each part of it that is ours instead, what the package does wrong there.

A test of a fault fails when the package has mended it: then our own code for it can go.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest
from kubernetes import config
from kubernetes.client import Configuration
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.incluster_config import InClusterConfigLoader
from kubernetes.config.kube_config import ConfigNode, KubeConfigMerger

from controllers.kube import AccessError, load_access
from controllers.kube.clock import SystemClock

from .test_kube_access import certificate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = "client.authentication.k8s.io/v1"


def token(*, expires: int) -> str:
    """Return an identity token that expires at an instant; nobody here looks at its signature."""
    parts = ({"alg": "none"}, {"sub": "alice", "exp": expires}, {"x": 1})
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
    )


FRESH, STALE = token(expires=32_503_680_000), token(expires=1)


def presented(folder: Path, user: dict[str, Any], **options: Any) -> str:
    """Return the header that the user of a kubeconfig in a folder shows."""
    written = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "nobody"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://example:6443"}}],
        "users": [{"name": "nobody", "user": {}}, {"name": "u", "user": user}],
    }
    path = folder / "config"
    path.write_text(json.dumps(written))
    access = load_access(path, user="u", **options)
    return asyncio.run(access.credentials.current(SystemClock())).authorization


def oidc(
    issuer: str = "https://issuer.example", identity: str = FRESH, **more: str
) -> dict[str, Any]:
    words = {"client-id": "kubectl", "client-secret": "s3cret", "id-token": identity}
    return {
        "auth-provider": {
            "name": "oidc",
            "config": {**words, "idp-issuer-url": issuer, "refresh-token": "r1", **more},
        }
    }


class Issuer:
    """An identity provider that gives a fresh token for the refresh token, and notes what it was told."""

    def __init__(self, folder: Path) -> None:
        self.authority, _ = certificate(folder)
        self.asked: list[str] = []
        self.told: list[dict[str, list[str]]] = []
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                self._answer({"token_endpoint": f"{issuer.address}/token"})

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                issuer.told.append(parse_qs(self.rfile.read(size).decode()))
                self._answer(
                    {
                        "access_token": "a",
                        "id_token": FRESH,
                        "refresh_token": "r2",
                        "token_type": "bearer",
                    }
                )

            def _answer(self, said: dict[str, str]) -> None:
                body = json.dumps(said).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.authority)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.address = f"https://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[Issuer]:
    made = Issuer(tmp_path)
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_an_identity_token_that_still_holds_is_shown(tmp_path: Path) -> None:
    assert presented(tmp_path, oidc()) == f"Bearer {FRESH}"


def test_an_identity_token_that_is_over_is_renewed_by_an_issuer_whose_authority_is_named_beside_the_kubeconfig(
    tmp_path: Path, issuer: Issuer
) -> None:
    named = {"idp-certificate-authority": issuer.authority.name}

    assert presented(tmp_path, oidc(issuer.address, STALE, **named)) == f"Bearer {FRESH}"
    assert issuer.told[0]["refresh_token"] == ["r1"]


def test_an_issuer_that_nobody_vouches_for_is_told_nothing(tmp_path: Path, issuer: Issuer) -> None:
    with pytest.raises(AccessError, match="the credential plugin `oidc` failed"):
        presented(tmp_path, oidc(issuer.address, STALE))

    assert (issuer.asked, issuer.told) == ([], [])


def test_the_package_asks_an_issuer_that_nobody_vouches_for(issuer: Issuer) -> None:
    import warnings

    asked = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {}}],
        "users": [{"name": "u", "user": oidc(issuer.address, STALE)}],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            config.load_kube_config_from_dict(asked, client_configuration=Configuration())
        except Exception as error:
            print("what comes of it is not the question:", error)

    assert issuer.asked


def test_a_program_named_by_a_provider_is_run_for_a_token(tmp_path: Path) -> None:
    said = {"credential": {"access_token": "made", "token_expiry": "2999-01-01T00:00:00Z"}}
    words = {
        "cmd-path": sys.executable,
        "cmd-args": f"-c print({json.dumps(json.dumps(said)).replace(' ', '')})",
    }

    assert presented(tmp_path, {"auth-provider": {"name": "gcp", "config": words}}) == "Bearer made"


@pytest.mark.parametrize(
    "provider", [{"name": "azure"}, {"name": "oidc", "config": {"id-token": "x"}}]
)
def test_a_provider_without_a_token_is_named(tmp_path: Path, provider: dict[str, Any]) -> None:
    with pytest.raises(AccessError, match=f"the auth provider `{provider['name']}` gives no token"):
        presented(tmp_path, {"auth-provider": provider})


def test_what_is_wrong_with_a_service_account_is_said(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    with pytest.raises(AccessError, match="service certification file does not exist"):
        load_access(environment=environment, service_account=tmp_path)


# What the package does wrong, and we do ourselves for that reason.


def test_the_package_keeps_the_line_break_of_a_token_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t\n")
    (tmp_path / "ca.crt").write_text("CA")
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    found = Configuration()

    InClusterConfigLoader(
        str(tmp_path / "token"), str(tmp_path / "ca.crt"), environ=environment
    ).load_and_set(found)

    assert found.api_key["BearerToken"].endswith("\n")


def test_the_package_takes_the_current_context_of_the_last_file_where_kubectl_takes_the_first(
    tmp_path: Path,
) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    for path in paths:
        path.write_text(json.dumps({"current-context": path.name}))

    assert KubeConfigMerger(":".join(map(str, paths))).config["current-context"] == "two"


def test_the_package_needs_a_token_beside_a_token_file_to_be_absent_and_reads_it_once(
    tmp_path: Path,
) -> None:
    (tmp_path / "t").write_text("one")
    written = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {}}],
        "users": [{"name": "u", "user": {"tokenFile": str(tmp_path / "t")}}],
    }
    found = Configuration()
    config.load_kube_config_from_dict(written, client_configuration=found)
    (tmp_path / "t").write_text("two")

    assert found.auth_settings()["BearerToken"]["value"] == "Bearer one"


ASKED = """
import json, os, sys
print(json.dumps({
    "apiVersion": "client.authentication.k8s.io/v1", "kind": "Unheard", "status": {
        "folder": os.getcwd(), "question": json.loads(os.environ["KUBERNETES_EXEC_INFO"])["spec"]}}))
"""


class Terminal:
    """An output that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


def package_runs(folder: Path, script: str, **more: Any) -> dict[str, Any]:
    """Return the status that the package gets from a plugin."""
    block = {"command": sys.executable, "args": ["-c", script], "apiVersion": VERSION, **more}
    cluster = {"server": "https://example", "certificate-authority": "ca.crt"}
    return ExecProvider(
        ConfigNode("exec", block), str(folder), ConfigNode("cluster", cluster)
    ).run()


def test_the_package_tells_plugins_of_a_path_changes_their_folder_and_takes_any_kind_of_answer(
    tmp_path: Path,
) -> None:
    said = package_runs(tmp_path, ASKED, provideClusterInfo=True)

    assert said["folder"] == str(tmp_path)
    assert said["question"]["cluster"]["certificate-authority"] == "ca.crt"


def test_the_package_asks_in_a_terminal_what_is_never_to_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(sys, "stdin", subprocess.DEVNULL)

    assert package_runs(tmp_path, ASKED, interactiveMode="Never")["question"]["interactive"]


def test_the_package_hides_why_a_plugin_failed_in_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(sys, "stdin", subprocess.DEVNULL)

    with pytest.raises(AttributeError):
        package_runs(tmp_path, "raise SystemExit(3)")
