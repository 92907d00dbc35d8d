"""What there is to say about one row: values in full, the rule's own text, exceptions that nearly match, other results."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from engine import vocabulary
from engine.fields import items, part, word
from engine.record import record
from kubectl_kpolicy.cluster import celkinds
from kubectl_kpolicy.cluster.exception_audit import every_exception
from kubectl_kpolicy.cluster.exceptions import policies_of, rule_texts, targets
from kubectl_kpolicy.cluster.policies import every_policy, policy_identity
from kubectl_kpolicy.cluster.violations import all_rows, rows_by_object
from kubectl_kpolicy.output import time_format
from kubectl_kpolicy.output.cells import plain
from kubectl_kpolicy.output.rows import Column, Listing, Row, Shape
from kubectl_kpolicy.output.structured import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from engine.model import Object
    from kubectl_kpolicy.cluster.cache import ClusterCache

_MOMENTS = (Shape.AGE, Shape.LEFT, Shape.TIME)


@record
class Section:
    """A part of the details: a title and its lines; `pairs` are labelled values."""

    title: str
    lines: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()


def sections(row: Row, listing: Listing, world: ClusterCache, now: datetime) -> list[Section]:
    """Return everything about a row, the most wanted first."""
    found = [Section("", pairs=tuple(_pairs(row, listing, now)))]
    if message := row.text("message") or row.text("detail"):
        found.append(Section("message", (message,)))
    found += _of_rule(row, world)
    if listing.noun in ("violations", "blocks"):
        found += _exceptions_near(row, world)
        found += _others(row, world)
    if listing.noun == "exceptions":
        found += _skipped(row, world)
    if listing.noun in ("grants", "inbox"):
        found += _timeline(row, world, now)
    if listing.noun == "policies":
        found += _rules(row.object)
    return found


def in_detail(listing: Listing) -> Listing:
    """Return a listing with what its details are made of beside its rows."""
    is_of_grants = listing.noun == "grants"
    return replace(listing, wants=(*listing.wants, "ends")) if is_of_grants else listing


def described(row: Row, listing: Listing, world: ClusterCache, now: datetime) -> str:
    """Return everything about a row."""
    lines = []
    for section in sections(row, listing, world, now):
        if section.title:
            lines.append(f"{section.title[:1].upper()}{section.title[1:]}:")
        width = max((len(label) for label, _ in section.pairs), default=0) + 2
        lines += [f"{label.capitalize() + ':':{width}} {plain(value)}" for label, value in section.pairs]  # fmt: skip
        lines += [f"  {plain(line)}" for line in section.lines]
    return "\n".join(lines) + "\n"


def _pairs(row: Row, listing: Listing, now: datetime) -> Iterator[tuple[str, str]]:
    for column in listing.columns:
        text = _value(row, column, now)
        if text and column.id not in ("message", "detail"):
            yield column.head.lower(), text


def _value(row: Row, column: Column, now: datetime) -> str:
    """Return a value in full: instants both relative and absolute."""
    if column.shape not in _MOMENTS:
        return row.text(column.id)
    at = row.moment(column.id)
    if at is None:
        return ""
    if column.shape is Shape.LEFT:
        relative = time_format.left(at, now, column.over)
    elif at > now:
        relative = f"in {time_format.span((at - now).total_seconds())}"
    else:
        relative = f"{time_format.age(at, now)} ago"
    return f"{relative}  ({time_format.absolute(at)})"


def policy_of(row: Row, world: ClusterCache) -> Object | None:
    """Return the policy that a row is about."""
    wanted = celkinds.identity_of(row)
    for policy in every_policy(world):
        if policy_identity(policy) == wanted:
            return policy
    return None


def _of_rule(row: Row, world: ClusterCache) -> Iterator[Section]:
    policy = policy_of(row, world) if row.text("rule") else None
    rule = rule_of(policy, row.text("rule")) if policy is not None else None
    if rule is not None:
        yield Section("rule", tuple(yaml_text(rule).splitlines()))


def rule_of(policy: Object, name: str) -> Object | None:
    """Return the rule of a policy that has a name, or from which the rule of that name was made for the controllers of Pods."""
    from engine.autogen import names_of  # here: most lists show no rule

    for one in items(policy, "spec", "rules"):
        if name in names_of(word(one, "name")):
            return one
    return None


def hint(row: Row, world: ClusterCache) -> str:
    """Return what the policy's author says about it, or the rule's message."""
    policy = policy_of(row, world)
    said = word(policy or {}, "metadata", "annotations", vocabulary.DESCRIPTION)
    return said or row.text("message") or "the policy says nothing about how to mend it"


def _exceptions_near(row: Row, world: ClusterCache) -> Iterator[Section]:
    """Yield the exceptions that name the policy: what keeps each from covering this object is worth knowing."""
    lines = []
    for obj in every_exception(world):
        if celkinds.identity_of(row) in policies_of(obj):
            place = f"{word(obj, 'metadata', 'namespace')}/{word(obj, 'metadata', 'name')}"
            lines.append(f"{place}: {', '.join(rule_texts(obj))} for {', '.join(targets(obj)) or 'anything'}")  # fmt: skip
    if lines:
        yield Section("exceptions of this policy", tuple(lines))


def _others(row: Row, world: ClusterCache) -> Iterator[Section]:
    same = (row.text("namespace"), row.text("resource"))
    lines = [
        f"{other.text('result')}  {other.text('policy')}/{other.text('rule')}"
        for other in rows_by_object(world).get(same, ())
        if other.key != row.key
    ]
    if lines:
        yield Section("other results of this object", tuple(lines))


def _skipped(row: Row, world: ClusterCache) -> Iterator[Section]:
    name = row.text("name")
    lines = [
        f"{other.text('namespace')}/{other.text('resource')}  {other.text('policy')}/{other.text('rule')}"
        for other in all_rows(world)
        if name in other.text("exception").split(",")
    ]
    yield Section("covers", tuple(f"{rule}" for rule in rule_texts(row.object)))
    yield Section("for", tuple(targets(row.object)) or ("anything",))
    yield Section("lets through now; turns red when it ends", tuple(lines) or ("nothing that reports know of",))  # fmt: skip


_FACTS = (("waits until", "approvalDeadline"), ("starts", "startsAt"), ("ends", "expiresAt"), ("last used", "lastUsedAt"),
          ("ended", "endedAt"), ("ended by", "endedBy"), ("said", "message"))  # fmt: skip


_DECIDED = {"approve": "approved", "deny": "denied"}


def _timeline(row: Row, world: ClusterCache, now: datetime) -> Iterator[Section]:
    spec, status = part(row.object, "spec"), part(row.object, "status")
    lines = [f"{word(row.object, 'metadata', 'creationTimestamp')} requested by {word(spec, 'requester')}"]  # fmt: skip
    for one in items(row.object, "spec", "decisions"):
        comment = word(one, "comment")
        done = _DECIDED.get(word(one, "verdict"), word(one, "verdict"))
        lines.append(f"{done} by {word(one, 'by')}" + (f": {comment}" if comment else ""))
    lines += [f"{title} {word(status, name)}" for title, name in _FACTS if word(status, name)]
    lines += _taken(row.object, world, now)
    yield Section("timeline", tuple(lines))


_REMEMBERED: Final = timedelta(hours=1)
"""How long an API server keeps Events; of an end before that nobody knows who has heard of it."""
_SKEW: Final = timedelta(seconds=5)
"""How far the clock of a replica may be behind that of the one that wrote the end."""


def _taken(grant: Object, world: ClusterCache, now: datetime) -> list[str]:
    """Return which replicas go by a grant no more since its end, and how long that took; nothing where it is not known."""
    place = (word(grant, "metadata", "namespace"), word(grant, "metadata", "name"))
    at = time_format.instant(word(grant, "status", "endedAt"))
    began = word(grant, "status", "startsAt")
    if at is None or not began or not world.is_synced("ends") or world.problem("ends"):
        return []
    heard = {}
    for event in world.objects("ends"):
        about = part(event, "involvedObject")
        when = time_format.instant(word(event, "eventTime") or word(event, "firstTimestamp"))
        if (word(about, "namespace"), word(about, "name")) == place and when and when >= at - _SKEW:
            after = time_format.span(max((when - at).total_seconds(), 0))
            heard[word(event, "reportingInstance")] = after
    if not heard and now - at < _REMEMBERED:
        since = time_format.span((now - at).total_seconds())
        return [f"no replica has taken the end yet, {since} after it"]
    return [f"taken by {name} {after} after the end" for name, after in sorted(heard.items())]


def _rules(policy: Object) -> Iterator[Section]:
    lines = []
    for rule in items(policy, "spec", "rules"):
        kinds = [name for name in ("validate", "mutate", "generate", "verifyImages") if name in rule]  # fmt: skip
        lines.append(f"{word(rule, 'name')} ({', '.join(kinds)})")
    lines += [word(one, "expression") for one in items(policy, "spec", "validations")]
    yield Section("rules", tuple(lines))
    conditions = items(policy, "status", "conditions") or items(policy, "status", "conditionStatus", "conditions")  # fmt: skip
    said = tuple(f"{word(one, 'type')}={word(one, 'status')}: {word(one, 'message')}" for one in conditions)  # fmt: skip
    if said:
        yield Section("engine says", said)
