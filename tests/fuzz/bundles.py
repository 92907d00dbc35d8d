"""The target of signatures: annotations and bundles of an object that somebody wants let through as signed.

An input is a JSON list: an object with signature annotations, and a Sigstore bundle. The seeds were signed once with keys that
nobody kept; `trust.json` holds what those keys are known by. Only what was signed may pass.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.lookups.registry.images import layer_of_bundle
from engine.errors import DocumentError, EvaluationError
from engine.lang.pattern.compiled import check_depth
from engine.manifests import Trust, compile_manifests
from engine.manifests.keys import certificates_from_pem, load_certificate, load_public_key
from engine.manifests.rekor import read_bundle
from engine.model import Status
from tests.fuzz import trees
from tests.fuzz.corpora import seeds_of
from tests.fuzz.target import Target

if TYPE_CHECKING:
    from random import Random

    from engine.manifests.rule import ManifestRule

_DOMAIN: Final = "cosign.sigstore.dev"
_NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)
_TRUSTED: Final = Path(__file__).with_name("trust.json")


@cache
def _stage() -> tuple[Trust, tuple[ManifestRule, ...]]:
    known = json.loads(_TRUSTED.read_bytes())
    entries = ({"keys": {"publicKeys": known["key"]}}, {"keyless": known["identity"]})
    rules = [compile_manifests({"attestors": [{"entries": [entry]}]}) for entry in entries]
    return Trust.from_json(known["root"]), tuple(rules)


def _bundle(data: bytes) -> str:
    try:
        both = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DocumentError("no JSON") from error
    if not isinstance(both, list) or len(both) != 2:
        raise DocumentError("not two")
    obj, bundle = both
    check_depth(bundle)
    trust, rules = _stage()
    words = [_layer(bundle)]
    if isinstance(obj, dict):
        for rule in rules:
            outcome = rule(obj, trust, _NOW)
            if outcome.status is Status.PASS:
                assert _content(obj) == _SIGNED, "passes with another content than was signed"
            words.append(str(outcome.status))
    return " ".join(words)


def _layer(bundle: Any) -> str:
    found = layer_of_bundle(bundle)
    if found is None:
        return "none"
    _, layer = found
    for read in (read_bundle, _certificates):
        try:
            read(layer.bundle if read is read_bundle else layer.certificate)
        except EvaluationError:
            return "unreadable"
    return "layer"


def _certificates(pem: bytes) -> None:
    for der in certificates_from_pem(pem.decode()):
        load_certificate(der)
    load_public_key(pem.decode())


def _content(obj: dict[str, Any]) -> dict[str, Any]:
    """Return what of an object was signed: all but the annotations of signatures, and what the API server fills in."""
    return {key: obj.get(key) for key in ("apiVersion", "kind", "data")}


_SIGNED: Final = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "safe"}}


def _made(chance: Random) -> bytes:
    pair = orjson.loads(chance.choice(seeds_of("bundle")))
    if chance.random() < 0.5:
        return trees.packed(trees.changed(chance, pair))
    held = pair[0]["metadata"]["annotations"]
    name = chance.choice(sorted(held))
    text = _opened(held[name])
    if chance.random() < 0.5:
        inner = _changed_json(chance, text)
    else:
        at = chance.randrange(len(text) + 1)
        inner = text[:at] + chance.randbytes(chance.choice((0, 1, 4))) + text[at + chance.choice((0, 1, 4)) :]  # fmt: skip
    held[name] = _closed(chance, inner, name)
    return trees.packed(pair)


def _opened(text: str) -> bytes:
    try:
        data = base64.b64decode(text)
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (binascii.Error, OSError, EOFError, zlib.error):
        return text.encode()


def _closed(chance: Random, data: bytes, name: str) -> str:
    if "signature" not in name and chance.random() < 0.9:
        data = gzip.compress(data, mtime=0)
    if chance.random() < 0.02:
        data = gzip.compress(b"\0" * 20_000_000, mtime=0)
    return base64.b64encode(data).decode()


def _changed_json(chance: Random, text: bytes) -> bytes:
    try:
        return trees.packed(trees.changed(chance, orjson.loads(text)))
    except orjson.JSONDecodeError:
        return trees.cut(chance, text.decode(errors="replace")).encode()


TARGETS: Final = (Target("bundle", _bundle, _made),)
