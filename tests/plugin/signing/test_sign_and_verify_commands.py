"""`kubectl kpolicy sign` and `verify`: files in, signed files out, and the engine's agreement before anything is written."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from engine.lang.yaml import load_all
from kubectl_kpolicy.cli import sign as sign_command
from kubectl_kpolicy.cli import verify as verify_command
from kubectl_kpolicy.cli.flags import Flags
from tests.engine.manifests.private_sigstore import ISSUER, SUBJECT, new_key, pem_of
from tests.plugin.signing.loopback_sigstore import LoopbackSigstore, identity_token, served

if TYPE_CHECKING:
    from collections.abc import Iterator

REPO = Path(__file__).parents[3]
EXCEPTION = """
apiVersion: kyverno.io/v2
kind: PolicyException
metadata:
  name: davepolex
  namespace: platform
spec:
  exceptions:
  - policyName: require-runasnonroot
    ruleNames: [runasnonroot]
  match:
    any:
    - resources:
        kinds: [Pod]
        names: ["mongo*"]
"""
DOMAIN = "cosign.sigstore.dev"


@pytest.fixture(autouse=True)
def _no_outside_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SIGSTORE_ID_TOKEN", "COSIGN_PASSWORD", "GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def instance() -> Iterator[LoopbackSigstore]:
    with served() as running:
        yield running


def call(module: Any, *arguments: object) -> int:
    parser = argparse.ArgumentParser()
    module.add_arguments(Flags(parser))
    code: int = module.run(parser.parse_args([*map(str, arguments)]))
    return code


def sign_it(*arguments: object) -> int:
    return call(sign_command, *arguments)


def verify_it(*arguments: object) -> int:
    return call(verify_command, *arguments)


def documents(path: Path) -> list[Any]:
    return [one.value for one in load_all(path.read_bytes())]


def key_files(folder: Path, name: str = "key") -> tuple[Path, Path]:
    key = new_key()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / f"{name}.pem").write_bytes(private)
    (folder / f"{name}.pub").write_text(pem_of(key))
    return folder / f"{name}.pem", folder / f"{name}.pub"


def write(folder: Path, text: str = EXCEPTION, name: str = "exception.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_key_signs_and_its_public_half_verifies(tmp_path: Path) -> None:
    private, public = key_files(tmp_path)
    source = write(tmp_path)

    assert sign_it("-f", source, "-k", private) == 0
    assert verify_it("-f", f"{source}.signed", "-k", public) == 0
    (signed,) = documents(tmp_path / "exception.yaml.signed")
    assert sorted(signed["metadata"]["annotations"]) == [f"{DOMAIN}/message", f"{DOMAIN}/signature"]
    assert signed["spec"] == documents(source)[0]["spec"]


def test_another_key_does_not_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    private, _ = key_files(tmp_path)
    _, other = key_files(tmp_path, "other")
    source = write(tmp_path)
    sign_it("-f", source, "-k", private)

    assert verify_it("-f", f"{source}.signed", "-k", other) == 1
    assert "not verified: PolicyException platform/davepolex" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("mongo*", "mong*", "spec.match.any.0.resources.names.0"),
        ("namespace: platform", "namespace: prod", "metadata.namespace"),
    ],
)
def test_a_change_after_signing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, path: str
) -> None:
    private, public = key_files(tmp_path)
    source, target = write(tmp_path), tmp_path / "out.yaml"
    sign_it("-f", source, "-k", private, "-o", target)
    target.write_text(target.read_text().replace(old, new))

    assert verify_it("-f", target, "-k", public, "-o", "json") == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert row["verified"] is False
    assert f'"key":"{path}"' in row["message"]


def test_an_unsigned_file_does_not_verify(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, public = key_files(tmp_path)

    assert verify_it("-f", write(tmp_path), "-k", public) == 1
    assert "message not found" in capsys.readouterr().out


def test_every_document_of_a_file_is_signed_and_verified(tmp_path: Path) -> None:
    private, public = key_files(tmp_path)
    more = EXCEPTION + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"
    source, target = write(tmp_path, more), tmp_path / "out.yaml"

    assert sign_it("-f", source, "-k", private, "-o", target) == 0
    assert verify_it("-f", target, "-k", public) == 0
    first, second = documents(target)
    assert first["metadata"]["annotations"] == second["metadata"]["annotations"]
    target.write_text(target.read_text().replace("k: v", "k: w"))
    assert verify_it("-f", target, "-k", public) == 1


def test_appending_keeps_the_first_signature_and_both_keys_verify(tmp_path: Path) -> None:
    one, one_public = key_files(tmp_path, "one")
    two, two_public = key_files(tmp_path, "two")
    source, target = write(tmp_path), tmp_path / "out.yaml"

    assert sign_it("-f", source, "-k", one, "-o", target) == 0
    assert sign_it("-f", target, "-k", two, "-o", target, "-A") == 0
    assert verify_it("-f", target, "-k", one_public, "-k", two_public) == 0
    assert f"{DOMAIN}/signature_1" in documents(target)[0]["metadata"]["annotations"]


def test_signing_again_without_appending_replaces_all_signatures(tmp_path: Path) -> None:
    one, one_public = key_files(tmp_path, "one")
    two, two_public = key_files(tmp_path, "two")
    target = write(tmp_path)
    sign_it("-f", target, "-k", one, "-o", target)
    sign_it("-f", target, "-k", one, "-o", target, "-A")

    assert sign_it("-f", target, "-k", two, "-o", target) == 0
    assert verify_it("-f", target, "-k", two_public) == 0
    assert verify_it("-f", target, "-k", one_public) == 1
    assert f"{DOMAIN}/signature_1" not in documents(target)[0]["metadata"]["annotations"]


def test_appending_to_a_changed_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private, _ = key_files(tmp_path)
    target = write(tmp_path)
    sign_it("-f", target, "-k", private, "-o", target)
    target.write_text(target.read_text().replace("mongo*", "mong*"))
    before = target.read_text()

    assert sign_it("-f", target, "-k", private, "-o", target, "-A") == 2
    assert "is not what was signed before" in capsys.readouterr().err
    assert target.read_text() == before


def test_extra_annotations_are_signed_too(tmp_path: Path) -> None:
    private, public = key_files(tmp_path)
    source, target = write(tmp_path), tmp_path / "out.yaml"

    assert sign_it("-f", source, "-k", private, "-o", target, "-a", "ticket=OPS-7") == 0
    assert verify_it("-f", target, "-k", public) == 0
    target.write_text(target.read_text().replace("OPS-7", "OPS-8"))
    assert verify_it("-f", target, "-k", public) == 1


def test_ambiguous_text_survives_signing(tmp_path: Path) -> None:
    private, public = key_files(tmp_path)
    texts = ["1e3", "0o17", "y", "No", "12:30", "2024-01-01", "", " x", "a: b", "#", "é\u2028", "~"]
    texts += ["line\nline\n", "line\n\nline", " odd\nline", "tail \nx", "\n", "-", "---", "a\tb\nc"]
    data = {f"k{number}": text for number, text in enumerate(texts)}
    source = write(
        tmp_path,
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "a"},
                "data": data,
                "numbers": [1, 1.5, 1e21, True, None, {}, [], [[1], {"a": []}]],
                "yes": {"on": "off"},
            }
        ),
    )
    target = tmp_path / "out.yaml"

    assert sign_it("-f", source, "-k", private, "-o", target) == 0
    assert verify_it("-f", target, "-k", public) == 0
    (signed,) = documents(target)
    del signed["metadata"]["annotations"]
    assert signed == documents(source)[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--tarball", "yes"),
        ("--tarball=yes",),
        ("-a", "novalue"),
        ("--timeout", "0"),
        ("-k", "/does/not/exist"),
        ("--trust-config", "/does/not/exist"),
    ],
)
def test_wrong_use_of_sign_exits_with_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    private, _ = key_files(tmp_path)
    source = write(tmp_path)

    assert sign_it("-f", source, "-k", private, *arguments) == 2
    assert not (tmp_path / "exception.yaml.signed").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--certificate-identity", "a"),
        ("--certificate-oidc-issuer", "a"),
        ("-k", "/does/not/exist"),
    ],
)
def test_wrong_use_of_verify_exits_with_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert verify_it("-f", write(tmp_path), *arguments) == 2


@pytest.mark.parametrize(
    "text",
    ["", "- 1", "a: [", "kind: List\nmetadata: {}\nitems: []", "kind: Pod", "metadata: {name: a}"],
)
def test_files_without_objects_exit_with_2(tmp_path: Path, text: str) -> None:
    private, public = key_files(tmp_path)
    source = write(tmp_path, text)

    assert sign_it("-f", source, "-k", private) == 2
    assert verify_it("-f", source, "-k", public) == 2


def test_an_exception_without_a_namespace_is_signed_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private, _ = key_files(tmp_path)
    source = write(tmp_path, EXCEPTION.replace("  namespace: platform\n", ""))

    assert sign_it("-f", source, "-k", private) == 0
    assert "warning: PolicyException davepolex names no namespace" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "sec1", "encrypted"])
def test_every_kind_of_key_file_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    key: Any = {
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
    }.get(kind, new_key)()
    form = PrivateFormat.TraditionalOpenSSL if kind == "sec1" else PrivateFormat.PKCS8
    lock = BestAvailableEncryption(b"secret") if kind == "encrypted" else NoEncryption()
    (tmp_path / "k").write_bytes(key.private_bytes(Encoding.PEM, form, lock))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "p").write_bytes(public)
    monkeypatch.setenv("COSIGN_PASSWORD", "secret")
    source = write(tmp_path)

    assert sign_it("-f", source, "-k", tmp_path / "k") == 0
    assert verify_it("-f", f"{source}.signed", "-k", tmp_path / "p") == 0
    monkeypatch.setenv("COSIGN_PASSWORD", "wrong")
    assert sign_it("-f", source, "-k", tmp_path / "k") == (2 if kind == "encrypted" else 0)


def test_cosigns_own_key_files_open_with_their_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import base64
    import hashlib

    from nacl.secret import SecretBox

    key = new_key()
    der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    salt, nonce = bytes(32), bytes(24)
    derived = hashlib.scrypt(b"pw", salt=salt, n=1024, r=8, p=1, dklen=32)
    sealed = SecretBox(derived).encrypt(der, nonce).ciphertext
    encode = lambda data: base64.b64encode(data).decode()  # noqa: E731 - one line says it
    file = {
        "kdf": {"name": "scrypt", "params": {"N": 1024, "r": 8, "p": 1}, "salt": encode(salt)},
        "cipher": {"name": "nacl/secretbox", "nonce": encode(nonce)},
        "ciphertext": encode(sealed),
    }
    label = "ENCRYPTED SIGSTORE PRIVATE KEY"
    body = encode(json.dumps(file).encode())
    (tmp_path / "cosign.key").write_text(
        f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"
    )
    (tmp_path / "cosign.pub").write_text(pem_of(key))
    source = write(tmp_path)

    monkeypatch.setenv("COSIGN_PASSWORD", "pw")
    assert sign_it("-f", source, "-k", tmp_path / "cosign.key") == 0
    assert verify_it("-f", f"{source}.signed", "-k", tmp_path / "cosign.pub") == 0
    monkeypatch.setenv("COSIGN_PASSWORD", "other")
    assert sign_it("-f", source, "-k", tmp_path / "cosign.key") == 2


def keyless_flags(instance: LoopbackSigstore, folder: Path) -> list[object]:
    config = folder / "trust.json"
    config.write_text(json.dumps(instance.trust_config))
    return ["--trust-config", config, "--identity-token", identity_token(instance.now)]


def test_keyless_signing_works_end_to_end_as_the_published_workflow_calls_it(
    tmp_path: Path, instance: LoopbackSigstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = keyless_flags(instance, tmp_path)
    monkeypatch.setenv("SIGSTORE_ID_TOKEN", str(flags.pop()))
    flags.pop()
    source, target = write(tmp_path), tmp_path / "signed.yaml"

    assert sign_it("--tarball=no", "-f", source, "-o", target, *flags) == 0
    trusted = tmp_path / "root.json"
    trusted.write_text(json.dumps(instance.trusted_root))
    identity = ["--certificate-identity", SUBJECT, "--certificate-oidc-issuer", ISSUER]
    assert verify_it("-f", target, *identity, "--trusted-root", trusted) == 0
    assert verify_it("-f", target, *identity) == 1
    elsewhere = ["--certificate-identity", SUBJECT, "--certificate-oidc-issuer", "https://x"]
    assert verify_it("-f", target, *elsewhere, "--trusted-root", trusted) == 1
    annotations = documents(target)[0]["metadata"]["annotations"]
    families = ["bundle", "certificate", "message", "signature"]
    assert sorted(annotations) == [f"{DOMAIN}/{family}" for family in families]


def test_a_refusing_authority_is_an_error_and_nothing_is_written(
    tmp_path: Path, instance: LoopbackSigstore, capsys: pytest.CaptureFixture[str]
) -> None:
    instance.answers["/api/v2/signingCert"] = 403
    try:
        assert sign_it("-f", write(tmp_path), *keyless_flags(instance, tmp_path)) == 1
    finally:
        instance.answers.clear()
    assert "keyless signing failed" in capsys.readouterr().err
    assert not (tmp_path / "exception.yaml.signed").exists()


def test_a_log_without_promises_cannot_be_used(
    tmp_path: Path, instance: LoopbackSigstore, capsys: pytest.CaptureFixture[str]
) -> None:
    instance.has_promise = False
    try:
        assert sign_it("-f", write(tmp_path), *keyless_flags(instance, tmp_path)) == 1
    finally:
        instance.has_promise = True
    assert "error: " in capsys.readouterr().err
    assert not (tmp_path / "exception.yaml.signed").exists()


def test_a_result_that_would_not_verify_is_not_written(
    tmp_path: Path, instance: LoopbackSigstore, capsys: pytest.CaptureFixture[str]
) -> None:
    private, _ = key_files(tmp_path)
    source = write(tmp_path)

    assert sign_it("-f", source, "-k", private, "--rekor-url", instance.url) == 1
    assert "transparency log that is not trusted" in capsys.readouterr().err
    assert not (tmp_path / "exception.yaml.signed").exists()


def test_a_key_signature_can_be_logged(tmp_path: Path, instance: LoopbackSigstore) -> None:
    private, public = key_files(tmp_path)
    source = write(tmp_path)
    trusted = tmp_path / "root.json"
    trusted.write_text(json.dumps(instance.trusted_root))
    flags = ["--rekor-url", instance.url, "--trusted-root", trusted]

    assert sign_it("-f", source, "-k", private, *flags) == 0
    assert verify_it("-f", f"{source}.signed", "-k", public, "--trusted-root", trusted) == 0
    assert verify_it("-f", f"{source}.signed", "-k", public) == 1
    assert sign_it("-f", source, "-k", private, *flags, "--no-tlog-upload") == 0
    assert verify_it("-f", f"{source}.signed", "-k", public) == 0


def test_keyless_without_logging_is_refused(tmp_path: Path, instance: LoopbackSigstore) -> None:
    flags = keyless_flags(instance, tmp_path)

    assert sign_it("-f", write(tmp_path), *flags, "--no-tlog-upload") == 2


def test_keyless_without_an_identity_says_where_one_may_come_from(
    tmp_path: Path,
    instance: LoopbackSigstore,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flags = keyless_flags(instance, tmp_path)[:2]
    monkeypatch.setattr("sys.stdin", io.StringIO())

    assert sign_it("-f", write(tmp_path), *flags) == 2
    assert "no identity to sign with" in capsys.readouterr().err


def test_the_commands_load_no_heavy_library_until_they_run() -> None:
    script = (
        "import sys, argparse\n"
        "from kubectl_kpolicy.cli import sign, verify\n"
        "from kubectl_kpolicy.cli.flags import Flags\n"
        "sign.add_arguments(Flags(argparse.ArgumentParser()))\n"
        "verify.add_arguments(Flags(argparse.ArgumentParser()))\n"
        "print([m for m in ('cryptography', 'sigstore', 'yaml', 're2', 'nacl') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=REPO, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
