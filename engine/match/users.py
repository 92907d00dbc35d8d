"""Filters by requester: `subjects`, `roles` and `clusterRoles` (row A-39).

Names of users, groups and service accounts take wildcards; role names are compared as written. Between the three lists
all given ones must match, inside one list any entry. What an unknown requester means differs by place and is decided by
the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang import wildcard

from .shapes import mapping, sequence, text, texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Block, Json, UserInfo

    UserTest = Callable[[UserInfo], bool]

_SERVICE_ACCOUNT = "system:serviceaccount:"


def compile_users(block: Block) -> tuple[tuple[str, UserTest], ...]:
    """Compile the user filters of one block into (what does not match, test) pairs.

    Raises PolicyError when a part has the wrong type.
    """
    tests: list[tuple[str, UserTest]] = []
    if roles := frozenset(texts(block.get("roles"), "roles")):
        tests.append(("roles", lambda user: not roles.isdisjoint(user.roles)))
    if cluster_roles := frozenset(texts(block.get("clusterRoles"), "clusterRoles")):
        tests.append(
            ("clusterRoles", lambda user: not cluster_roles.isdisjoint(user.cluster_roles))
        )
    if subjects := sequence(block.get("subjects"), "subjects"):
        tests.append(("subjects", _any_of(tuple(_subject(item) for item in subjects))))
    return tuple(tests)


def _any_of(tests: tuple[UserTest, ...]) -> UserTest:
    return lambda user: any(test(user) for test in tests)


def _subject(entry: Json) -> UserTest:
    block = mapping(entry, "subjects")
    name = text(block.get("name"), "subjects.name")
    match block.get("kind"):
        case "ServiceAccount":
            return _service_account(text(block.get("namespace"), "subjects.namespace"), name)
        case "User":
            is_user = wildcard.compiled(name)
            return lambda user: is_user(user.username)
        case "Group":
            is_group = wildcard.compiled(name)
            return lambda user: any(is_group(group) for group in user.groups)
    return lambda _user: False


def _service_account(namespace: str, name: str) -> UserTest:
    """Test a service account's user name part by part, so that a wildcard never spans the colon between them."""
    in_namespace, is_name = wildcard.compiled(namespace), wildcard.compiled(name)

    def test(user: UserInfo) -> bool:
        if not user.username.startswith(_SERVICE_ACCOUNT):
            return False
        parts = user.username[len(_SERVICE_ACCOUNT) :].split(":")
        return len(parts) == 2 and in_namespace(parts[0]) and is_name(parts[1])

    return test
