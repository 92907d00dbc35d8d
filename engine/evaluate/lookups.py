"""Questions to the outside world, and their answers, as data.

The engine may not fetch anything. A rule that needs an answer it was not given stops with `LookupNeeded`; the caller
fetches what is asked for, under its own limits, and evaluates that rule again with the answer in `Inputs.answers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.record import record

if TYPE_CHECKING:
    from engine.model import Json


@record
class ConfigMapLookup:
    """A ConfigMap; answered with the object."""

    namespace: str
    name: str


@record
class ApiCallLookup:
    """A call to the API server (row A-52); answered with the decoded response. `body` is JSON text."""

    method: str
    url_path: str
    body: str = ""


@record
class ServiceLookup:
    """A call to another service (row A-53); answered with the decoded response. `within` is the asking policy's namespace."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    ca_bundle: str = ""
    within: str = ""


@record
class ImageLookup:
    """Registry data of an image (row A-54); answered with the entry's map.

    `secrets` are pull secrets to use, `namespace/name` or the bare name of one beside the engine; `is_insecure` lets the
    registry's certificate be any. `within` is the asking policy's namespace.
    """

    reference: str
    secrets: tuple[str, ...] = ()
    is_insecure: bool = False
    within: str = ""


@record
class SignatureLookup:
    """Digest, signatures and attestations of an image (row A-88); answered with an `ImageData`.

    `repository` is where signatures are kept when not beside the image, `tag_prefix` what stands before their tags;
    `artifacts` are the kinds of other artifacts beside it that are wanted. An image that passed before under the same
    `confirmation` (empty: none) need not be gathered for again. The rest is as in ImageLookup.
    """

    reference: str
    secrets: tuple[str, ...] = ()
    is_insecure: bool = False
    repository: str = ""
    within: str = ""
    tag_prefix: str = ""
    artifacts: tuple[str, ...] = ()
    confirmation: str = ""


@record
class TrustLookup:
    """The trusted root that a TUF repository holds; answered with the document.

    `mirror` is the repository's address, `root` the JSON text of the root to begin with; `within` as in ServiceLookup.
    """

    mirror: str
    root: str
    within: str = ""


@record
class GlobalLookup:
    """A GlobalContextEntry, or `entry.projection` (row A-55); answered with its data. `within` as in ServiceLookup."""

    name: str
    within: str = ""


@record
class ObjectLookup:
    """One object of the cluster, for clones and for what generated objects would change; None when it is missing.

    `within` is the asking policy's namespace.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    within: str = ""


@record
class ListLookup:
    """Objects of one kind, for targets of mutate-existing rules and lists of clones; answered with a list.

    Name and namespace may hold wildcards; `selector` is the JSON text of a label selector. `within` is the asking policy's
    namespace. Where no kind is given, `resource` names it as addresses do.
    """

    api_version: str
    kind: str
    namespace: str
    name: str = ""
    selector: str = ""
    within: str = ""
    resource: str = ""


@record
class HostLookup:
    """Whether a host name has a public address (`is_external_url`); answered with a bool."""

    host: str


Lookup = (
    ConfigMapLookup
    | ApiCallLookup
    | ServiceLookup
    | ImageLookup
    | SignatureLookup
    | TrustLookup
    | GlobalLookup
    | ObjectLookup
    | ListLookup
    | HostLookup
)


@record
class Answer:
    """What came back: a value, an error text, or `is_absent` where there is nobody to ask.

    Of an error `is_missing` says that what was asked for is not there, which expressions read as null (rows CE-09, CE-11).

    An absent answer leaves the context entry out, as Kyverno's command line does without a cluster: values given by
    hand then stand in its place, and a variable that has none is an unknown key.
    """

    value: Json = None
    error: str = ""
    is_absent: bool = False
    is_missing: bool = False

    @classmethod
    def found(cls, value: Json) -> Answer:
        """Make an answer with a value."""
        return cls(value=value)

    @classmethod
    def failed(cls, error: str, *, is_missing: bool = False) -> Answer:
        """Make an answer that is an error."""
        return cls(error=error, is_missing=is_missing)

    @classmethod
    def absent(cls) -> Answer:
        """Make the answer of nobody to ask."""
        return cls(is_absent=True)


class LookupNeeded(Exception):  # noqa: N818 - it is a request, not an error, and no handler of errors may catch it
    """Stops the evaluation of one rule until `lookups` are answered."""

    def __init__(self, *lookups: Lookup) -> None:
        super().__init__(", ".join(map(str, lookups)))
        self.lookups = lookups
