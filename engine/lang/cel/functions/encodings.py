"""Kyverno's functions on texts and data: JSON, YAML, hashes, gzip, certificates, service accounts, lists to maps.

All of them are pure; those that need time or chance are in `instants`.
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EngineError
from engine.lang import gotext, json, yaml
from engine.lang.cel.errors import CelError, no_overload
from engine.lang.cel.values import (
    CelType,
    Duration,
    Flag,
    Optional,
    Timestamp,
    Uint,
    as_key,
    type_name,
)
from engine.vocabulary import SERVICE_ACCOUNT

from .cluster import both_cases
from .registry import Library
from .standard import span_text, time_text

if TYPE_CHECKING:
    from engine.lang.cel.env import CelEnv

LIBRARY: Final = Library(cost=60)
_MOST: Final = 8 << 20
_GZIP_WINDOW: Final = 31


def plain(env: CelEnv, value: Any) -> Any:
    """Return a value as decoded JSON has it. Raises CelError for what JSON cannot hold."""
    env.charge(1)
    if isinstance(value, list):
        return [plain(env, item) for item in value]
    if isinstance(value, dict):
        return {_key_text(key): plain(env, part) for key, part in value.items()}
    if isinstance(value, Uint):
        return int(value)
    if isinstance(value, Timestamp):
        return time_text(value)
    if isinstance(value, Duration):
        return span_text(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Optional):
        return plain(env, value.value)
    if isinstance(value, CelType):
        return value.name
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise CelError(f"cannot convert {type_name(value)} to JSON")


def _key_text(key: Any) -> str:
    if isinstance(key, Flag):
        return "true" if key.value else "false"
    return key if isinstance(key, str) else str(int(key))


@LIBRARY.add(*both_cases("json.Marshal(dyn) -> string"), env=True)
def _marshal(env: CelEnv, value: Any) -> str:
    text = gotext.compact_json(plain(env, value))
    env.charge(len(text) // 8)
    return text


@LIBRARY.add(*both_cases("json.Unmarshal(string) -> dyn"))
def _unmarshal(text: str) -> Any:
    try:
        return json.load(text)
    except EngineError as error:
        raise CelError(f"failed to decode JSON: {error.message}") from error


@LIBRARY.add(*both_cases("yaml.Parse(string) -> dyn"))
def _parse_yaml(text: str) -> Any:
    try:
        return yaml.load(text)
    except EngineError as error:
        raise CelError(f"failed to decode YAML: {error.message}") from error


def _digest(name: str, text: str) -> str:
    return hashlib.new(name, text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


for _name in ("md5", "sha1", "sha256"):
    LIBRARY.add(f"{_name}(string) -> string", f"hash.{_name}(string) -> string")(
        partial(_digest, _name)
    )


@LIBRARY.add(*both_cases("gzip.Compress(bytes) -> bytes", "gzip.Compress(string) -> bytes"))
def _compress(data: bytes | str) -> bytes:
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    packer = zlib.compressobj(wbits=_GZIP_WINDOW)
    return packer.compress(raw) + packer.flush()


@LIBRARY.add(*both_cases("gzip.Decompress(bytes) -> string"), env=True)
def _decompress(env: CelEnv, data: bytes) -> str:
    unpacker = zlib.decompressobj(wbits=_GZIP_WINDOW)
    try:
        found = unpacker.decompress(data, _MOST)
    except zlib.error as error:
        raise CelError("gzip: invalid data") from error
    env.charge(len(found) // 8)
    if unpacker.unconsumed_tail:
        raise CelError(f"gzip: more than {_MOST} bytes")
    if not unpacker.eof:
        raise CelError("gzip: unexpected end of data")
    return found.decode("utf-8", "replace")


@LIBRARY.add(*both_cases("x509.Decode(string) -> dyn"))
def _decode(pem: str) -> Any:
    from engine.lang.jmes import Env
    from engine.lang.jmes.formats import x509_decode

    return _without_subclasses(x509_decode(Env(), pem))


def _without_subclasses(value: Any) -> Any:
    """Return decoded data with plain numbers in it, whose type the operators know."""
    if isinstance(value, dict):
        return {key: _without_subclasses(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_subclasses(part) for part in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


@LIBRARY.add(
    "parseServiceAccount(string) -> dyn", *both_cases("user.ParseServiceAccount(string) -> dyn")
)
def _service_account(text: str) -> dict[str, str]:
    namespace, colon, name = text.removeprefix(SERVICE_ACCOUNT).partition(":")
    is_one = text.startswith(SERVICE_ACCOUNT) and colon and namespace and name
    return {"Name": name, "Namespace": namespace} if is_one else {"Name": "", "Namespace": ""}


@LIBRARY.add("listObjToMap(list, list, string, string) -> dyn", env=True)
def _list_to_map(
    env: CelEnv, keys: list[Any], values: list[Any], key_field: str, value_field: str
) -> dict[Any, Any]:
    env.charge(len(keys))
    if len(keys) != len(values):
        raise CelError("listObjToMap needs two lists of the same length")
    found: dict[Any, Any] = {}
    for one, other in zip(keys, values, strict=True):
        key = _field(one, key_field)
        if not isinstance(key, str | int):
            raise CelError(f"unsupported key type: {type_name(key)}")
        found[as_key(key)] = _field(other, value_field)
    return found


def _field(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        raise no_overload("listObjToMap")
    if name not in value:
        raise CelError(f"no such key: {name}")
    return value[name]
