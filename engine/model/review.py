"""What is put before the policies: one object, what happens to it, and who asks.

The webhook makes a `Review` from an AdmissionReview, the background scan from a stored object, the command line from a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.record import field, lazy, record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .json import Json, Object


@record
class UserInfo:
    """Who makes the request: name, groups, and the roles bound to them (`namespace:name` for roles)."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    cluster_roles: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of the requester; then filters by user are not tested (Kyverno, background mode)."""
        return not (self.username or self.groups or self.roles or self.cluster_roles or self.uid)

    @property
    def info(self) -> dict[str, Json]:
        """The `userInfo` of a request, with what is known."""
        known = {
            "username": self.username,
            "uid": self.uid,
            "groups": list(self.groups),
            "extra": dict(self.extra),
        }
        return {key: value for key, value in known.items() if value}


NOBODY = UserInfo()


@record
class Review:
    """One object to decide on.

    `object` is None for DELETE, `old_object` is None for CREATE. `group`, `version`, `kind` and `subresource` are those of
    the request (for a subresource, of the parent kind). `request` holds further fields of the AdmissionRequest that
    policies may read as `request.*`. `namespace_labels` are the labels of the object's namespace. `payload` is the mode
    (`JSON`, `HTTP`, `Envoy`) of a document that is no Kubernetes object, which only policies of that mode may be asked of.
    """

    object: Object | None
    old_object: Object | None = None
    operation: str = "CREATE"
    group: str = ""
    version: str = "v1"
    kind: str = ""
    subresource: str = ""
    user: UserInfo = NOBODY
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    request: Mapping[str, Json] = field(default_factory=dict)
    dry_run: bool = False
    payload: str = ""

    @lazy
    def target(self) -> Object:
        """The object that rules look at: the new one, or the old one where there is no new one (row A-40)."""
        return self.object or self.old_object or {}

    @lazy
    def metadata(self) -> Mapping[str, Json]:
        """Metadata of `target`, empty where it is missing or not a map."""
        found = self.target.get("metadata")
        return found if isinstance(found, dict) else {}

    @lazy
    def resource(self) -> str:
        """The resource that the request is about, without its subresource: what it says, else what the kind suggests."""
        given = self.request.get("resource")
        if isinstance(given, dict) and given.get("resource"):
            return str(given["resource"])
        from .resources import resource_of

        return resource_of(self.kind)

    @lazy
    def name(self) -> str:
        """Name of `target`; its generateName while it has no name (row A-34)."""
        return str(self.metadata.get("name") or self.metadata.get("generateName") or "")

    @lazy
    def namespace(self) -> str:
        """Namespace of `target`, empty for cluster-scoped objects."""
        return str(self.metadata.get("namespace") or "")


def review_of(obj: Object, **fields: Any) -> Review:
    """Make a Review of `obj` with group, version and kind taken from the object itself."""
    group, _, version = str(obj.get("apiVersion", "v1")).rpartition("/")
    return Review(object=obj, group=group, version=version, kind=str(obj.get("kind", "")), **fields)
