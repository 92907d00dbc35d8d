"""UserInfo files (row K-08): who makes the request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.model import UserInfo

from .shapes import ANY, MAP, TEXT, check_shape

if TYPE_CHECKING:
    from engine.lang.yaml import Document

FILE = {
    "apiVersion": TEXT,
    "kind": TEXT,
    "metadata": MAP,
    "roles": [TEXT],
    "clusterRoles": [TEXT],
    "userInfo": {"username": TEXT, "uid": TEXT, "groups": [TEXT], "extra": ANY},
}


def read_user(document: Document) -> UserInfo:
    """Read a UserInfo file; raises DocumentError for unknown fields and wrong types."""
    found: dict[str, Any] = check_shape(document, FILE, what="user info file")
    user = found.get("userInfo") or {}
    return UserInfo(
        username=user.get("username") or "",
        uid=user.get("uid") or "",
        groups=tuple(user.get("groups") or ()),
        extra=user.get("extra") or {},
        roles=tuple(found.get("roles") or ()),
        cluster_roles=tuple(found.get("clusterRoles") or ()),
    )
