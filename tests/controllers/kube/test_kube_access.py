import asyncio
import base64
import json
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from controllers.kube import Access, AccessError, Unreachable, connect, load_access
from controllers.kube.access import Impersonation, Tls
from controllers.kube.clock import SystemClock
from controllers.kube.credentials import Fixed, Plugin, Presented
from controllers.kube.kinds import PODS
from tests.clock import ManualClock

from .apiserver import answering, run, serving


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def config(user: str, *, server="https://example:6443", cluster="") -> str:
    return f"""
apiVersion: v1
kind: Config
current-context: dev
contexts: [{{name: dev, context: {{cluster: c, user: u, namespace: team}}}}, {{name: other, context: {{cluster: c, user: v}}}}]
clusters: [{{name: c, cluster: {{server: "{server}"{cluster}}}}}]
users: [{{name: u, user: {user}}}]
"""


def current(access: Access) -> Presented:
    return asyncio.run(access.credentials.current(SystemClock()))


def test_a_plain_kubeconfig_gives_server_token_and_namespace(tmp_path):
    access = load_access(write(tmp_path / "k", config("{token: abc}")))
    assert (access.server, access.namespace, access.context) == (
        "https://example:6443",
        "team",
        "dev",
    )
    assert current(access).authorization == "Bearer abc"


def test_certificates_come_from_data_or_from_files_beside_the_kubeconfig(tmp_path):
    data = base64.b64encode(b"CERT").decode()
    (tmp_path / "key.pem").write_bytes(b"KEY")
    (tmp_path / "ca.pem").write_bytes(b"CA")
    text = config(
        f"{{client-certificate-data: {data}, client-key: key.pem}}",
        cluster=", certificate-authority: ca.pem, tls-server-name: api",
    )
    access = load_access(write(tmp_path / "k", text))
    assert current(access) == Presented("", b"CERT", b"KEY")
    assert access.tls == Tls(b"CA", "api", True)


def test_verification_is_off_only_when_the_kubeconfig_says_so(tmp_path):
    text = config("{}", cluster=", insecure-skip-tls-verify: true")
    assert load_access(write(tmp_path / "k", text)).tls.verifies is False
    assert load_access(write(tmp_path / "l", config("{}"))).tls.verifies is True


def test_a_user_name_and_password_are_sent_as_basic(tmp_path):
    access = load_access(write(tmp_path / "k", config("{username: a, password: b}")))
    assert current(access).authorization == "Basic " + base64.b64encode(b"a:b").decode()


def test_a_token_file_is_read_from_the_folder_of_the_kubeconfig(tmp_path):
    (tmp_path / "t").write_text("fromfile\n")
    access = load_access(write(tmp_path / "k", config("{tokenFile: t}")))
    assert current(access).authorization == "Bearer fromfile"


def test_impersonation_of_the_kubeconfig_is_kept(tmp_path):
    text = config("{token: t, as: jane, as-groups: [a, b], as-user-extra: {k: [v]}}")
    access = load_access(write(tmp_path / "k", text))
    assert access.impersonate == Impersonation("jane", ("a", "b"), "", (("k", "v"),))


def test_of_several_kubeconfigs_the_first_word_counts(tmp_path):
    first = write(tmp_path / "a", config("{token: first}"))
    second = write(tmp_path / "b", config("{token: second}") + "\n")
    environment = {"KUBECONFIG": f"{first}:{tmp_path / 'missing'}:{second}"}
    assert current(load_access(environment=environment)).authorization == "Bearer first"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("[]", {}, "is not a kubeconfig"),
        ("a: [", {}, "is not readable"),
        ("{}", {}, "no context is current"),
        (config("{}"), {"context": "nowhere"}, "there is no context `nowhere`"),
        (config("{}"), {"context": "other"}, "there is no user `v`"),
        (config("{}"), {"cluster": "x"}, "there is no cluster `x`"),
        (config("{client-certificate-data: '*'}"), {}, "is not base64"),
        (config("{client-certificate: gone}"), {}, "cannot read"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig_is_said(tmp_path, text, options, message):
    with pytest.raises(AccessError, match=message):
        load_access(write(tmp_path / "k", text), **options)


def test_without_any_kubeconfig_the_way_out_is_named():
    with pytest.raises(AccessError) as caught:
        load_access(environment={})
    assert "--kubeconfig" in caught.value.help


def test_inside_a_cluster_the_service_account_is_used(tmp_path):
    for name, text in (("token", "sa"), ("ca.crt", "CA"), ("namespace", "kyverno")):
        (tmp_path / name).write_text(text)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = load_access(environment=environment, service_account=tmp_path)
    assert (access.server, access.namespace) == ("https://[fd00::1]:443", "kyverno")
    assert current(access).authorization == "Bearer sa"


def test_a_token_file_is_read_again_after_a_minute(tmp_path):
    from controllers.kube.credentials import TokenFile

    async def scenario():
        clock, path = ManualClock(), write(tmp_path / "t", "one")
        source = TokenFile(path)
        assert (await source.current(clock)).authorization == "Bearer one"
        path.write_text("two")
        assert (await source.current(clock)).authorization == "Bearer one"
        await clock.advance(61)
        assert (await source.current(clock)).authorization == "Bearer two"

    run(scenario())


PLUGIN = """#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"made","expirationTimestamp":"2999-01-01T00:00:00Z"}}'
"""


def test_a_plugin_named_by_the_kubeconfig_is_run_for_a_token(tmp_path):
    script = write(tmp_path / "login", PLUGIN)
    script.chmod(0o700)
    user = f"{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: '{script}'}}}}"
    access = load_access(write(tmp_path / "k", config(user)))
    assert current(access).authorization == "Bearer made"


def exec_block(tmp_path, script, *, cluster="", **more):
    """Return the access of a kubeconfig that names a plugin with this text as a shell script."""
    path = write(tmp_path / "login", script)
    path.chmod(0o700)
    block = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), **more}
    return load_access(write(tmp_path / "k", config(json.dumps({"exec": block}), cluster=cluster)))


def answer(**words):
    said = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", **words}
    return f"#!/bin/sh\necho '{json.dumps(said)}'\n"


def test_a_plugin_is_asked_in_its_environment_and_told_of_the_cluster_where_it_is_to_be(tmp_path):
    script = f'#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" >{tmp_path}/asked-$1-$REGION\n{answer(status={"token": "t"})[10:]}'
    words = {"args": ["a"], "env": [{"name": "REGION", "value": "eu"}]}
    authority = base64.b64encode(b"CA").decode()
    cluster = f", certificate-authority-data: {authority}, extensions: [{{name: client.authentication.k8s.io/exec, extension: {{audience: me}}}}]"
    current(exec_block(tmp_path, script, cluster=cluster, **words))
    plain = json.loads((tmp_path / "asked-a-eu").read_text())
    current(exec_block(tmp_path, script, cluster=cluster, provideClusterInfo=True, **words))
    told = json.loads((tmp_path / "asked-a-eu").read_text())

    assert plain == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    assert told["spec"]["cluster"] == {
        "server": load_access(str(tmp_path / "k")).server,
        "certificate-authority-data": authority,
        "config": {"audience": "me"},
    }


def test_a_plugin_may_give_a_certificate(tmp_path):
    status = {"clientCertificateData": "CERT", "clientKeyData": "KEY"}
    presented = current(exec_block(tmp_path, answer(status=status)))
    assert (presented.certificate, presented.key, presented.authorization) == (b"CERT", b"KEY", "")


def test_a_plugin_with_a_relative_path_is_looked_for_beside_the_kubeconfig(tmp_path):
    access = exec_block(tmp_path, answer(status={"token": "near"}), command="./login")
    assert current(access).authorization == "Bearer near"


@pytest.mark.parametrize(
    ("script", "more", "message"),
    [
        ("#!/bin/sh\necho no rights >&2; exit 3\n", {}, "failed with code 3: no rights"),
        ("#!/bin/sh\necho token\n", {}, "printed no ExecCredential"),
        (answer(), {}, "printed no ExecCredential"),
        (answer(status={}, apiVersion="old"), {}, "speaks `old`, the kubeconfig asks for"),
        (answer(status={}), {"command": "/nowhere/login"}, "`/nowhere/login` is not there"),
        (answer(status={}), {"interactiveMode": "Always"}, "asks for a terminal"),
        ("no program", {}, "cannot be run"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_said(tmp_path, script, more, message):
    with pytest.raises(AccessError, match=message):
        current(exec_block(tmp_path, script, **more))


def test_how_a_missing_plugin_is_installed_is_said_where_the_kubeconfig_tells(tmp_path):
    access = exec_block(tmp_path, "", command="no-such-plugin", installHint="brew install it")
    with pytest.raises(AccessError) as caught:
        current(access)
    assert caught.value.help == "brew install it"


def test_a_plugin_is_run_again_before_its_token_expires_and_after_a_refusal():
    runs = []

    def make():
        runs.append(1)
        return Presented(f"Bearer {len(runs)}"), datetime(2026, 1, 1, 1, tzinfo=UTC)

    async def scenario():
        clock, plugin = ManualClock(datetime(2026, 1, 1, tzinfo=UTC)), Plugin("p", make)
        await plugin.current(clock)
        assert (await plugin.current(clock)).authorization == "Bearer 1"
        await clock.advance(timedelta(minutes=59, seconds=31).total_seconds())
        assert (await plugin.current(clock)).authorization == "Bearer 2"
        assert plugin.spoil() is True
        assert plugin.spoil() is False

    run(scenario())


def test_reading_a_kubeconfig_loads_neither_http_nor_the_package(tmp_path):
    import subprocess
    import sys

    path = write(tmp_path / "k", config("{token: abc}"))
    code = (
        "import sys; from controllers.kube import load_access; "
        f"load_access({str(path)!r}); print([m for m in ('aiohttp', 'kubernetes') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def certificate(tmp_path: Path) -> tuple[Path, bytes]:
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path / "pair.pem"
    path.write_bytes(pem + secret)
    return path, pem


def test_only_the_named_authority_is_trusted(tmp_path):
    path, pem = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)

    async def scenario():
        async with (
            serving(answering((200, {"a": 1})), ssl_context=context) as server,
            connect(Access(server.address, tls=Tls(pem))) as client,
        ):
            assert await client.get(PODS, "a", "b") == {"a": 1}
            async with connect(Access(server.address), clock=ManualClock()) as client:
                with pytest.raises(Unreachable, match="is not trusted"):
                    await client.create(PODS, {"metadata": {"namespace": "b"}})
            async with connect(Access(server.address, tls=Tls(pem, "other"))) as client:
                with pytest.raises(Unreachable, match="is not trusted"):
                    await client.create(PODS, {"metadata": {"namespace": "b"}})

    run(scenario())


def test_a_client_certificate_is_shown_to_the_server(tmp_path):
    path, pem = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=pem.decode())
    shown = Fixed(Presented("", pem, path.read_bytes()))

    async def scenario():
        async with (
            serving(answering((200, {})), ssl_context=context) as server,
            connect(Access(server.address, shown, Tls(pem))) as client,
        ):
            assert await client.get(PODS, "a", "b") == {}

    run(scenario())


def test_a_certificate_that_is_none_is_an_own_error():
    async def scenario():
        async with connect(Access("https://127.0.0.1:1", tls=Tls(b"nonsense"))) as client:
            with pytest.raises(AccessError):
                await client.get(PODS, "a", "b")

    run(scenario())
