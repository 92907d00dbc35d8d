"""Questions of expressions to the outside world, as data for `CelEnv.ask`.

Apart from the functions that ask them because the layer above translates them into its own lookups, and needs nothing
else of this package for that. Maps and lists in them are plain values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GetResource:
    """One object by plural resource name; answered with it.

    `namespace` is empty for cluster-wide kinds, and None where the call does not say: then it is that of the policy.
    """

    api_version: str
    resource: str
    namespace: str | None
    name: str


@dataclass(frozen=True, slots=True)
class ListResources:
    """Objects of one resource; answered with the list object (`items`). `labels` are pairs that must match."""

    api_version: str
    resource: str
    namespace: str | None
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class PostResource:
    """An object sent to the API server; answered with what it returns."""

    api_version: str
    resource: str
    namespace: str | None
    body: Any


@dataclass(frozen=True, slots=True)
class MapKind:
    """The resource name of a kind; answered with `{group, version, resource}`."""

    api_version: str
    kind: str


@dataclass(frozen=True)
class HttpCall:
    """A call to another service; answered with the decoded response."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: Any = None
    ca_bundle: str = ""


@dataclass(frozen=True, slots=True)
class GlobalContext:
    """An entry of the global context, or one of its projections; answered with its data."""

    name: str
    projection: str = ""


@dataclass(frozen=True, slots=True)
class ImageMetadata:
    """Registry data of an image; answered with a map."""

    reference: str


@dataclass(frozen=True)
class ImageVerification:
    """A signature or attestation check of an image; answered with a number of verified attestors or a payload.

    `what` is the function's name, `arguments` its further arguments.
    """

    what: str
    reference: Any
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class GenerateObjects:
    """Objects that a generating policy wants in a namespace, None for its own; answered with whether that is accepted."""

    namespace: str | None
    objects: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class AccessCheck:
    """A question to the authorizer; answered with `{allowed: bool, reason: str, error: str}`.

    Either `path` is set or the resource fields are. `service_account` is `namespace/name` or empty for the requester;
    the selectors are texts.
    """

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    service_account: str = ""
    field_selector: str = ""
    label_selector: str = ""
