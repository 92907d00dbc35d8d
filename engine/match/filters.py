"""One entry of a match or exclude block compiled into named checks (rows A-31 to A-39).

An entry is the AND of its attributes. The same attributes mean slightly different things in a rule's match, a rule's
exclude, and an exception or cleanup policy; `Use` names the three and each difference is a line of this module.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from engine.lang import wildcard
from engine.record import record
from engine.vocabulary import SERVICE_ACCOUNT

from .combine import every, never, some
from .kinds import compile_kinds, parse_kind, plain_kinds
from .marks import fewest, marks_of_names, marks_of_patterns, marks_of_selector
from .selectors import compile_selector, some_pair
from .shapes import mapping, sequence, text, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.model import Block, Json, Review, UserInfo

    from .combine import Test
    from .marks import Marks

    UserTest = Callable[[UserInfo], bool]


OF_SORT = frozenset({"kinds", "operations"})
"""The checks that come to the same for all reviews of one kind, version, subresource and operation."""
OF_PLACE = OF_SORT | {"namespaces", "namespaceSelector"}
"""Those that do where the namespace and its labels are the same, too."""


class Use(Enum):
    """What an entry is compiled for."""

    MATCH = "match"
    EXCLUDE = "exclude"
    STANDING = "standing"
    """Exceptions and cleanup policies: operations are ignored, and a namespaceSelector is ignored for Namespaces (X-03)."""


@record
class Filter:
    """One compiled entry.

    `checks` are (attribute, test) pairs, `test` is all of them in one, `kinds` the names it can match at most (None:
    any), `is_empty` says that the entry asked for nothing at all; of `marks` an object must bear one.
    """

    checks: tuple[tuple[str, Test], ...]
    test: Test
    kinds: frozenset[str] | None
    is_empty: bool
    marks: Marks = None

    def mismatch(self, review: Review) -> str:
        """Name the first attribute that does not fit, empty when all fit."""
        if self.is_empty:
            return "nothing is asked for"
        return next((name for name, test in self.checks if not test(review)), "")

    def settled(self, review: Review, known: frozenset[str]) -> bool | None:
        """Return what the entry says by checks that are known, None where others decide; one that asks for nothing matches nothing."""
        if self.is_empty:
            return False
        is_open = False
        for name, test in self.checks:
            if name not in known:
                is_open = True
            elif not test(review):
                return False
        return None if is_open else True


def compile_filter(entry: Json, use: Use) -> Filter:
    """Compile one entry `{resources, subjects, roles, clusterRoles}`; raises PolicyError on wrong types."""
    block = mapping(entry, use.value)
    resources = mapping(block.get("resources"), "resources")
    operations = texts(resources.get("operations"), "operations")
    kinds = tuple(map(parse_kind, texts(resources.get("kinds"), "kinds")))
    checks = [*_operation_checks(operations, use)]
    if kinds:
        checks.append(("kinds", compile_kinds(kinds)))
    checks += _resource_checks(resources, use)
    users = compile_users(block)
    has_resources = bool(checks or operations)
    checks += [(name, _user_check(test, use, has_resources=has_resources)) for name, test in users]
    return Filter(
        checks=tuple(checks),
        test=every([test for _name, test in checks]),
        kinds=plain_kinds(kinds) if kinds else None,
        is_empty=not (has_resources or users),
        marks=_marks(resources),
    )


def _marks(resources: Block) -> Marks:
    """Return the marks that an entry asks of an object."""
    return fewest(
        (
            marks_of_patterns(filter(None, (resources.get("name"),))),
            marks_of_patterns(texts(resources.get("names"), "names")),
            marks_of_selector(resources.get("selector")),
            marks_of_selector({"matchLabels": resources.get("annotations")}, "annotation"),
            marks_of_names(texts(resources.get("namespaces"), "namespaces"), "namespace"),
            marks_of_selector(resources.get("namespaceSelector"), "space"),
        )
    )


def _operation_checks(operations: tuple[str, ...], use: Use) -> Iterator[tuple[str, Test]]:
    if operations and use is not Use.STANDING:
        allowed = frozenset(operations)
        yield "operations", lambda review: review.operation in allowed


def _resource_checks(resources: Block, use: Use) -> Iterator[tuple[str, Test]]:
    if name := text(resources.get("name"), "name"):
        yield "name", _name_check((name,))
    if names := texts(resources.get("names"), "names"):
        yield "names", _name_check(names)
    if namespaces := texts(resources.get("namespaces"), "namespaces"):
        yield "namespaces", _namespace_check(namespaces)
    if annotations := mapping(resources.get("annotations"), "annotations"):
        yield "annotations", _annotation_check(annotations)
    if resources.get("selector") is not None:
        yield "selector", _label_check(resources["selector"])
    if resources.get("namespaceSelector") is not None:
        yield "namespaceSelector", _namespace_label_check(resources["namespaceSelector"], use)


def _any_wildcard(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Compile patterns into one test; those without wildcards become one set look-up."""
    exact = frozenset(item for item in patterns if not wildcard.has_wildcard(item))
    tests = tuple(wildcard.compiled(item) for item in patterns if wildcard.has_wildcard(item))
    if not tests:
        return exact.__contains__
    if not exact and len(tests) == 1:
        return tests[0]
    return lambda found: found in exact or any(test(found) for test in tests)


def _name_check(patterns: tuple[str, ...]) -> Test:
    fits = _any_wildcard(patterns)
    return lambda review: fits(review.name)


def _namespace_check(patterns: tuple[str, ...]) -> Test:
    """Compare the namespace of an object, or the name of a Namespace (row A-35)."""
    fits = _any_wildcard(patterns)
    return lambda review: fits(review.name if review.kind == "Namespace" else review.namespace)


def _annotation_check(annotations: Mapping[str, Json]) -> Test:
    tests = tuple(some_pair(key, text(value, "annotations")) for key, value in annotations.items())

    def fits(review: Review) -> bool:
        found = review.metadata.get("annotations")
        return isinstance(found, dict) and all(test(found) for test in tests)

    return fits


def _label_check(selector: Json) -> Test:
    fits = compile_selector(selector)

    def check(review: Review) -> bool:
        labels = review.metadata.get("labels")
        return fits(labels if isinstance(labels, dict) else {})

    return check


def _namespace_label_check(selector: Json, use: Use) -> Test:
    """Test the labels of the object's namespace; a Namespace itself has none (row A-37)."""
    fits = compile_selector(selector)
    for_namespaces = use is Use.STANDING
    return lambda review: (
        for_namespaces if review.kind == "Namespace" else fits(review.namespace_labels)
    )


def _user_check(test: UserTest, use: Use, *, has_resources: bool) -> Test:
    """Let a rule's match go by resources alone while the requester is unknown; elsewhere unknown means no match (A-39)."""
    if use is Use.MATCH and has_resources:
        return lambda review: review.user.is_empty or test(review.user)
    return lambda review: not review.user.is_empty and test(review.user)


# Filters by requester: `subjects`, `roles` and `clusterRoles` (row A-39).
#
# Names of users, groups and service accounts take wildcards; role names are compared as written. Between the three lists
# all given ones must match, inside one list any entry. What an unknown requester means differs by place and is decided by
# the caller.


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
        tests.append(("subjects", some([_subject(item) for item in subjects])))
    return tuple(tests)


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
    return never


def _service_account(namespace: str, name: str) -> UserTest:
    """Test a service account's user name part by part, so that a wildcard never spans the colon between them."""
    in_namespace, is_name = wildcard.compiled(namespace), wildcard.compiled(name)

    def test(user: UserInfo) -> bool:
        if not user.username.startswith(SERVICE_ACCOUNT):
            return False
        parts = user.username[len(SERVICE_ACCOUNT) :].split(":")
        return len(parts) == 2 and in_namespace(parts[0]) and is_name(parts[1])

    return test
