"""Codes under a seal: of use only to the holder of the key, told when opened, lost to nobody; and how users stand with wrong codes."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519

from controllers.kube.kinds import LEASES, NAMESPACES, ONE_TIME_CODES, PODS
from controllers.store.throttles import COUNTS, LABELS, lease_name
from engine import vocabulary
from engine.codes import canonical, issued_name
from engine.errors import EngineError
from kubectl_kpolicy.codes.sealing import opened, read_private, read_recipient, seal, sealed_in
from kubectl_kpolicy.output.diagnostics import ExitCode
from kubectl_kpolicy.session import cluster
from tests.plugin.grants.staging import Stage, play

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

ADMIN: Any = {"groups": ("system:masters",)}
BIND = ("--bind", "no-host/host-namespaces:Pod/debug", "-n", "default")
CODE = "ABCD-EFGH-JKMN-PQRS-TVWX"
KEYS = {
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "x25519": x25519.X25519PrivateKey.generate,
}


def written(folder: Path, key: Any, name: str = "key") -> tuple[str, str]:
    """Write a key pair and return the files of the private and the public part."""
    private, public = folder / name, folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))  # fmt: skip
    public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))  # fmt: skip
    return str(private), str(public)


@pytest.mark.parametrize("kind", KEYS)
def test_what_was_sealed_is_opened_by_the_key_and_by_no_other(kind: str, tmp_path: Path):
    private, public = written(tmp_path, KEYS[kind]())
    other, _ = written(tmp_path, KEYS[kind](), "other")
    sealed = seal(CODE, "code-x", read_recipient(public))
    assert CODE not in json.dumps(sealed)
    assert opened(sealed, read_private(private)) == CODE
    with pytest.raises(EngineError, match="is sealed to another key"):
        opened(sealed, read_private(other))


@pytest.mark.parametrize("kind", KEYS)
def test_a_seal_that_was_changed_is_broken(kind: str, tmp_path: Path):
    private, public = written(tmp_path, KEYS[kind]())
    sealed = seal(CODE, "code-x", read_recipient(public))
    swapped = {**sealed, "spec": {**sealed["spec"], "sealed": sealed["spec"]["sealed"][:-8] + "AAAAAAA="}}  # fmt: skip
    for changed in (swapped, {**sealed, "spec": {**sealed["spec"], "sealed": "?"}}):
        with pytest.raises(EngineError, match="the seal of `code-x` is broken"):
            opened(changed, read_private(private))
    if "nonce" in sealed["spec"]:
        renamed = {**sealed, "metadata": {"name": "code-y"}}
        with pytest.raises(EngineError, match="the seal of `code-y` is broken"):
            opened(renamed, read_private(private))


def test_keys_that_nothing_can_be_sealed_to_are_refused(tmp_path: Path):
    for key in (ed25519.Ed25519PrivateKey.generate(), rsa.generate_private_key(65537, 1024)):
        _, public = written(tmp_path, key)
        with pytest.raises(EngineError, match="nothing can be sealed to"):
            read_recipient(public)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(EngineError, match="is no public key"):
        read_recipient(str(tmp_path / "text"))
    with pytest.raises(EngineError, match="is no private key"):
        read_private(str(tmp_path / "text"))
    with pytest.raises(EngineError, match="holds no sealed codes"):
        sealed_in(str(tmp_path / "text"))


@pytest.fixture
def on_stage(tmp_path, capsys, monkeypatch):
    def run(act: Callable[[Stage], Awaitable[None]]) -> None:
        async def furnished(stage: Stage) -> None:
            await stage.admin.create(NAMESPACES, {"metadata": {"name": "kyverno"}})
            await stage.allow("bob", ["get", "list", "create", "patch"], "onetimecodes", "onetimecodes/status")  # fmt: skip
            await act(stage)

        play(tmp_path, capsys, monkeypatch, furnished)

    return run


def pod_file(folder: Path) -> str:
    file = folder / "pod.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "debug"}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}))  # fmt: skip
    return str(file)


def test_a_sealed_code_is_printed_opened_and_brought_along_and_that_is_told(on_stage, tmp_path: Path):  # fmt: skip
    private, public = written(tmp_path, KEYS["p256"]())
    file = tmp_path / "sealed.json"

    async def act(stage: Stage) -> None:
        said = await stage.run("bob", "otp", "issue", "--for-user", "ada", *BIND, "--seal-to", public)  # fmt: skip
        assert said.code == 0, said.err
        file.write_text(said.out)
        [stored] = (await stage.admin.list_all(ONE_TIME_CODES)).items
        code = opened(json.loads(said.out), read_private(private))
        assert issued_name(canonical(code) or "") == stored["metadata"]["name"]
        assert code not in said.out + said.err
        words = ("otp", "redeem", "--sealed", str(file), "-f", pod_file(tmp_path))
        assert (await stage.run("root", *words, **ADMIN)).code == ExitCode.USAGE
        tried = await stage.run("root", *words, "--key", private, "--dry-run=client", **ADMIN)
        assert (tried.code, (await stage.admin.list_all(PODS)).items) == (0, [])
        used = await stage.run("root", *words, "--key", private, **ADMIN)
        assert (used.code, used.out) == (0, "pod/debug applied\n")
        assert (await stage.admin.get(PODS, "debug", "default"))["metadata"]["annotations"]["kpolicy.io/code"] == code  # fmt: skip
        events = (await stage.admin.raw("GET", "/api/v1/namespaces/kyverno/events"))["items"]
        assert [one["message"] for one in events] == [f"root opened the seal of {stored['metadata']['name']}"]  # fmt: skip

    on_stage(act)


def test_a_set_of_sealed_codes_holds_some_for_each_person_and_one_is_taken_by_name(on_stage, tmp_path: Path):  # fmt: skip
    private, public = written(tmp_path, KEYS["x25519"]())
    file = tmp_path / "set.json"

    async def act(stage: Stage) -> None:
        words = ("otp", "seal-set", "--for-user", "ada", "--for-user", "eve", *BIND, "--count", "2", "--reason", "control plane down", "--seal-to", public, "--out-file", str(file))  # fmt: skip
        tried = await stage.run("bob", *words, "--dry-run=server")
        assert (tried.code, file.exists()) == (0, False), tried.err
        said = await stage.run("bob", *words)
        assert (said.code, said.out) == (0, ""), said.err
        assert file.stat().st_mode & 0o777 == 0o600
        kept = sealed_in(str(file))
        assert sorted(one["spec"]["user"] for one in kept) == ["ada", "ada", "eve", "eve"]
        stored = {one["metadata"]["name"] for one in (await stage.admin.list_all(ONE_TIME_CODES)).items}  # fmt: skip
        assert {one["metadata"]["name"] for one in kept} == stored
        use = ("otp", "redeem", "--sealed", str(file), "--key", private, "-f", pod_file(tmp_path))
        unclear = await stage.run("root", *use, **ADMIN)
        assert (unclear.code, "(for eve)" in unclear.err) == (ExitCode.USAGE, True)
        chosen = await stage.run("root", *use, kept[2]["metadata"]["name"], **ADMIN)
        assert chosen.code == 0, chosen.err
        assert (await stage.run("bob", *words)).code == 1, "the file is there already"
        assert len((await stage.admin.list_all(ONE_TIME_CODES)).items) == 4

    on_stage(act)


def test_another_code_than_the_one_that_was_named_is_not_sent(on_stage, tmp_path: Path, monkeypatch):  # fmt: skip
    async def act(stage: Stage) -> None:
        words = ("otp", "redeem", "code-other", "-f", pod_file(tmp_path))
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{CODE}\n"))
        said = await stage.run("root", *words, **ADMIN)
        assert (said.code, "nothing was sent" in said.err) == (1, True)
        assert not (await stage.admin.list_all(PODS)).items
        given = await stage.run("root", "otp", "redeem", CODE, "-f", pod_file(tmp_path), **ADMIN)
        assert (given.code, "a code is no argument" in given.err, CODE in given.err) == (ExitCode.USAGE, True, False)  # fmt: skip

    on_stage(act)


def test_a_dry_run_makes_no_code_void(on_stage, tmp_path: Path):
    async def act(stage: Stage) -> None:
        await stage.run("bob", "otp", "issue", "--for-user", "ada", *BIND, "--out-file", str(tmp_path / "c"))  # fmt: skip
        [stored] = (await stage.admin.list_all(ONE_TIME_CODES)).items
        name = stored["metadata"]["name"]
        for tried in ("client", "server"):
            said = await stage.run("bob", "otp", "void", name, f"--dry-run={tried}")
            assert (said.code, f"({tried} dry run)" in said.out) == (0, True), said.err
            assert not (await stage.admin.get(ONE_TIME_CODES, name, "kyverno")).get("status")
        assert (await stage.run("bob", "otp", "void", "absent", "--dry-run=client")).code == ExitCode.GONE  # fmt: skip
        assert (await stage.run("bob", "otp", "void", name)).code == 0
        assert (await stage.admin.get(ONE_TIME_CODES, name, "kyverno"))["status"]["state"] == "void"

    on_stage(act)


def test_a_code_that_cannot_be_handed_over_is_said_to_be_lost_and_how_to_make_it_void(on_stage, tmp_path: Path, monkeypatch):  # fmt: skip
    from kubectl_kpolicy.codes import commands

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(commands, "hand_over", full)

    async def act(stage: Stage) -> None:
        said = await stage.run("bob", "otp", "issue", "--for-user", "ada", *BIND, "--out-file", str(tmp_path / "c"))  # fmt: skip
        [stored] = (await stage.admin.list_all(ONE_TIME_CODES)).items
        assert said.code == 1
        assert f"kubectl kpolicy otp void {stored['metadata']['name']}" in said.err

    on_stage(act)


def test_nobody_is_asked_for_a_code_where_nothing_is_to_be_asked(monkeypatch, tmp_path: Path, capsys):  # fmt: skip
    from kubectl_kpolicy import entry

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert entry.main(["otp", "redeem", "-f", pod_file(tmp_path), "--non-interactive"]) == 1
    assert "nobody is to be asked" in capsys.readouterr().err


def test_who_brought_wrong_codes_and_whose_are_not_looked_at(on_stage):
    async def act(stage: Stage) -> None:
        at = int(cluster.now().timestamp())
        for user, ticks, days in (("ada", 3, 3), ("eve", 12, 12), ("mal", 1, 100)):
            counts = {"ticks": {f"wrong/{at // 10}": ticks}, "days": {f"wrong/{at // 86_400}": days}}  # fmt: skip
            annotations = {vocabulary.USER: user, COUNTS: orjson.dumps(counts).decode()}
            metadata = {"name": lease_name(user), "namespace": "kyverno", "labels": dict(LABELS), "annotations": annotations}  # fmt: skip
            await stage.admin.create(LEASES, {"metadata": metadata, "spec": {"holderIdentity": "kpolicy"}})  # fmt: skip
        said = await stage.run("root", "otp", "lock-status", "-o", "json", **ADMIN)
        assert [(one["user"], one["state"]) for one in json.loads(said.out)["items"]] == [("mal", "locked"), ("eve", "slowed"), ("ada", "open")]  # fmt: skip
        assert "mal: no code is looked at until fewer than 100" in said.err
        one = await stage.run("root", "otp", "lock-status", "ada", **ADMIN)
        assert [line.split()[:2] for line in one.out.splitlines()[1:]] == [["ada", "open"]]
        assert (await stage.run("nobody", "otp", "lock-status")).code == ExitCode.FORBIDDEN

    on_stage(act)
