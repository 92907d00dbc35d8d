"""Kubeconfig files: a thin reader that knows names, merges and relative paths, and loads nothing heavy.

For `access.load_access` and for whoever lists contexts. The `kubernetes` package can read these files too, but takes a
third of a second to import; people wait for the plugin.
"""

from __future__ import annotations

import base64
import binascii
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError, reason_of
from engine.lang import yaml

from .errors import AccessError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Entry:
    """A named cluster, user or context, and the file it stands in, which its relative paths start from."""

    value: Mapping[str, Any] = field(repr=False)
    file: Path

    def text(self, key: str) -> str:
        """Return a text field; empty when it is absent."""
        return str(self.value.get(key) or "")

    def data(self, key: str) -> bytes:
        """Return a field given as `KEY-data` (base64) or as a file named by `KEY`; raises AccessError."""
        encoded = self.value.get(f"{key}-data")
        if encoded:
            try:
                return base64.b64decode(str(encoded), validate=True)
            except (ValueError, binascii.Error) as error:
                raise AccessError(f"`{key}-data` in `{self.file}` is not base64") from error
        path = self.path(key)
        if path is None:
            return b""
        try:
            return path.read_bytes()
        except OSError as error:
            raise AccessError(f"cannot read `{path}`, which `{self.file}` names") from error

    def path(self, key: str) -> Path | None:
        """Return the path that a field names, relative ones starting from the kubeconfig's folder."""
        named = self.text(key)
        return self.file.parent / named if named else None


@dataclass(slots=True)
class KubeConfig:
    """Kubeconfig files merged as kubectl merges them: of equal names the first one counts."""

    files: tuple[Path, ...] = ()
    current: str = ""
    contexts: dict[str, Entry] = field(default_factory=dict)
    clusters: dict[str, Entry] = field(default_factory=dict)
    users: dict[str, Entry] = field(default_factory=dict)


def default_paths(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the files that kubectl would read without `--kubeconfig`; those that do not exist are left out."""
    return [path for path in _looked_for(environment) if path.exists()]


def _looked_for(environment: Mapping[str, str]) -> list[Path]:
    named = environment.get("KUBECONFIG", "")
    if named:
        return [Path(part) for part in named.split(os.pathsep) if part]
    home = environment.get("HOME") or environment.get("USERPROFILE") or ""
    return [Path(home) / ".kube" / "config"] if home else []


def no_kubeconfig(environment: Mapping[str, str] = os.environ) -> AccessError:
    """Return the error that none of the files is there that kubectl would read without `--kubeconfig`."""
    places = ", ".join(f"`{path}`" for path in _looked_for(environment))
    by = ", which KUBECONFIG names," if environment.get("KUBECONFIG") else ""
    return AccessError(
        f"there is no kubeconfig: {places}{by} is not there"
        if places
        else "there is no kubeconfig",
        help="name one with --kubeconfig or KUBECONFIG, or start a sandbox with `kubectl kpolicy sandbox up`",
    )


def read_kubeconfig(paths: Iterable[Path]) -> KubeConfig:
    """Return the merged content of kubeconfig files; raises AccessError for what cannot be read."""
    merged = KubeConfig()
    for path in paths:
        document = _read(path)
        merged.files = (*merged.files, path)
        merged.current = merged.current or str(document.get("current-context") or "")
        _merge(merged.contexts, document, "contexts", "context", path)
        _merge(merged.clusters, document, "clusters", "cluster", path)
        _merge(merged.users, document, "users", "user", path)
    return merged


def _read(path: Path) -> Mapping[str, Any]:
    try:
        value = yaml.load(path.read_bytes(), file=str(path))
    except OSError as error:
        raise AccessError(f"cannot read the kubeconfig `{path}`: {reason_of(error)}") from error
    except EngineError as error:
        raise AccessError(f"the kubeconfig `{path}` is not readable: {error.message}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise AccessError(f"`{path}` is not a kubeconfig")
    return value


def _merge(
    into: dict[str, Entry], document: Mapping[str, Any], plural: str, singular: str, path: Path
) -> None:
    for item in document.get(plural) or ():
        if not isinstance(item, dict):
            raise AccessError(f"`{plural}` in `{path}` holds something that is not a map")
        value = item.get(singular)
        into.setdefault(str(item.get("name") or ""), Entry(value if isinstance(value, dict) else {}, path))  # fmt: skip
