"""Files of the signing commands: manifests in, manifests out, and the trust that ships with the plugin.

The trusted root and the services of the public Sigstore instance are data of this package, published by its operators for
embedding; nothing is fetched and no cache is written, so both commands work without a network and without a home.
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from engine.errors import reason_of
from engine.fields import members
from engine.lang.yaml import load_all

from .errors import SigningError, UsageError

if TYPE_CHECKING:
    from engine.model import Object

_MAX_FILE = 16 * 1024 * 1024


def read_manifests(path: str) -> list[Object]:
    """Return the documents of a YAML or JSON file (`-`: standard input); raise UsageError when there are none."""
    documents = [one.value for one in load_all(read_bytes(path), file=path)]
    found = [value for value in documents if value is not None]
    for value in found:
        if not isinstance(value, dict) or not value.get("kind"):
            raise UsageError(f"`{path}` holds a document that is no Kubernetes object")
        if members(value) is not None:
            raise UsageError(
                f"`{path}` holds a {value['kind']}, which cannot be signed or verified as a whole",
                help="write its items as documents of their own, separated by `---`",
            )
        if not isinstance(value.get("metadata"), dict):
            raise UsageError(f"`{path}` holds a {value['kind']} without metadata")
    if not found:
        raise UsageError(f"`{path}` holds no documents")
    return found


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file or of standard input (`-`); raise UsageError when it cannot be read."""
    try:
        if path == "-":
            return sys.stdin.buffer.read(_MAX_FILE + 1)[:_MAX_FILE]
        with Path(path).open("rb") as file:
            data = file.read(_MAX_FILE + 1)
    except OSError as error:
        raise UsageError(f"cannot read `{path}`: {reason_of(error)}") from error
    if len(data) > _MAX_FILE:
        raise UsageError(f"`{path}` is larger than 16 MiB")
    return data


def write_text(path: str, text: str) -> None:
    """Write a whole file, or standard output (`-`); raise SigningError when it cannot be written."""
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SigningError(f"cannot write `{path}`: {reason_of(error)}") from error


def read_json(path: str) -> Any:
    """Return the value of a JSON file; raise UsageError when it is none."""
    try:
        return orjson.loads(read_bytes(path))
    except orjson.JSONDecodeError as error:
        raise UsageError(f"`{path}` is not JSON") from error


def trust_config(trusted_root: str = "", config: str = "", rekor_url: str = "") -> dict[str, Any]:
    """Return the trust configuration to sign and verify with (ClientTrustConfig as JSON).

    Paths replace what ships with the plugin: `config` both parts, `trusted_root` the keys; `rekor_url` replaces the log.
    """
    found = read_json(config) if config else _public_good()
    if not isinstance(found, dict) or not isinstance(found.get("trustedRoot"), dict):
        raise UsageError(f"`{config}` is no trust configuration: it has no `trustedRoot`")
    if trusted_root:
        found = {**found, "trustedRoot": read_json(trusted_root)}
    if rekor_url:
        services = found.get("signingConfig") or {}
        known = (services.get("rekorTlogUrls") or [{}])[0]
        log = {**known, "url": rekor_url.rstrip("/"), "majorApiVersion": 1}
        found = {**found, "signingConfig": {**services, "rekorTlogUrls": [log]}}
    return found


def _public_good() -> dict[str, Any]:
    folder = files(__package__) / "public_good"
    return {
        "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
        "trustedRoot": orjson.loads((folder / "trusted_root.json").read_bytes()),
        "signingConfig": orjson.loads((folder / "signing_config.json").read_bytes()),
    }
