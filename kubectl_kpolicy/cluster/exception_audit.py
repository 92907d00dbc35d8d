"""What is wrong with exceptions as a whole: expired ones that are still there, orphans, unused, stale and over-broad ones.

The engine's audit judges exceptions against policies (`engine.exceptions`); what reports and Events tell of their use, and
how much they cover, is added here.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from controllers.store.events import SCAN
from engine.errors import EngineError
from engine.fields import items, part, word
from engine.grants.cause import exception_name
from engine.grants.subjects import reference_of
from engine.model.kinds import is_of_cel
from engine.record import record
from kubectl_kpolicy.output.time_format import instant

from . import celkinds
from .violations import SOURCES, all_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.model import Object

    from .cache import ClusterCache

STALE_AFTER: Final = timedelta(days=30)
"""How long an exception may go unused; a month of releases, restarts and scans has passed it by then."""

YOUNG: Final = timedelta(hours=1)
"""How old an exception must be before it counts as unused: the background scan has come round."""


_Told = tuple[str, int, datetime | None]
"""An exception by `namespace/name`, so many uses of it, and when the last of these was."""


@record
class Usage:
    """How often an exception let something through at least, and when last; `known` says whether anything could be read."""

    count: int = 0
    last: datetime | None = None
    known: bool = False


def every_exception(world: ClusterCache) -> list[Object]:
    """Return the exceptions of both API groups."""
    return [*world.objects("exceptions"), *world.objects(celkinds.EXCEPTIONS)]


def usage_of(world: ClusterCache) -> dict[str, Usage]:
    """Return the usage of every exception by `namespace/name`: the most that skipped results, Events or its grant tell of.

    They tell of the same uses, each in its way: results of what is there now, Events of admissions of the last hour, a
    grant of all admissions that would have been denied without it.
    """
    found: dict[str, Usage] = {}
    known = any(world.is_synced(source) for source in SOURCES)
    for told in (_from_results(world), _from_events(world), _from_grants(world)):
        counts: Counter[str] = Counter()
        for key, count, at in told:
            counts[key] += count
            old = found.get(key, Usage())
            last = max(filter(None, (old.last, at)), default=None)
            found[key] = Usage(max(old.count, counts[key]), last, known=True)
    if known:
        for obj in every_exception(world):
            key = f"{word(obj, 'metadata', 'namespace')}/{word(obj, 'metadata', 'name')}"
            found.setdefault(key, Usage(known=True))
    return found


def _from_results(world: ClusterCache) -> Iterator[_Told]:
    """Yield the exceptions that results name; reports give names only, so every namespace's namesake is meant."""
    places: dict[str, list[str]] = {}
    for obj in every_exception(world):
        name = word(obj, "metadata", "name")
        places.setdefault(name, []).append(word(obj, "metadata", "namespace"))
    for row in all_rows(world):
        for name in filter(None, row.text("exception").split(",")):
            for namespace in places.get(name.strip(), ()):
                yield f"{namespace}/{name.strip()}", 1, row.moment("age")


def _from_events(world: ClusterCache) -> Iterator[_Told]:
    """Yield the exceptions of Events of admissions; what a scan skips is in the results."""
    for event in world.objects("uses"):
        about = part(event, "involvedObject")
        if about.get("kind") == "PolicyException" and event.get("reportingComponent") != SCAN:
            last = instant(word(event, "lastTimestamp") or word(event, "eventTime"))
            count = event.get("count")
            key = f"{word(about, 'namespace')}/{word(about, 'name')}"
            yield key, count if isinstance(count, int) else 1, last


def _from_grants(world: ClusterCache) -> Iterator[_Told]:
    for grant in world.objects("grants"):
        status = part(grant, "status")
        if isinstance(count := status.get("uses"), int) and count:
            name = exception_name(word(grant, "metadata", "name"))
            key = f"{word(grant, 'metadata', 'namespace')}/{name}"
            yield key, count, instant(word(status, "lastUsedAt"))


def known_rules(world: ClusterCache) -> dict[str, set[str]]:
    """Return the rule names of every policy by identity, those that are generated for controllers included."""
    from engine.autogen import names_of  # here: most lists show no exception

    found: dict[str, set[str]] = {}
    for policy in (*world.objects("clusterpolicies"), *world.objects("policies")):
        name = word(policy, "metadata", "name")
        if policy.get("kind") == "Policy":
            name = f"{word(policy, 'metadata', 'namespace')}/{name}"
        rules = {word(rule, "name") for rule in items(policy, "spec", "rules")}
        stored = {word(rule, "name") for rule in items(policy, "status", "autogen", "rules")}
        found[name] = stored.union(*map(names_of, rules))
    for policy in world.objects(celkinds.POLICIES):
        found.setdefault(celkinds.identity_of_policy(policy), set())
    return found


def concerns(
    obj: Object, usage: Usage, rules: dict[str, set[str]], now: datetime, until: datetime | None
) -> list[str]:
    """Return everything that is wrong with one exception, each once."""
    names = [*_by_engine(obj, rules, now), *_by_use(obj, usage, now), *_by_reach(obj)]
    if until is not None and now >= until:
        names = [found for found in names if found in ("expired", "orphaned")]
    return list(dict.fromkeys(names))


def _by_engine(obj: Object, rules: dict[str, set[str]], now: datetime) -> Iterator[str]:
    if celkinds.is_cel(obj):
        yield from _of_cel(obj, rules, now)
        return
    from engine.exceptions import audit_exception
    from engine.parse import parse_exception

    try:
        found = list(audit_exception(parse_exception(obj, strict=False), rules, now))
    except EngineError:
        yield "unreadable"
        return
    for concern in found:
        if not concern.startswith("no such"):
            yield str(concern)
        elif rules:
            yield "orphaned"


def _of_cel(obj: Object, rules: dict[str, set[str]], now: datetime) -> Iterator[str]:
    """Yield the same about an exception from policies written in CEL, which names policies and no rules."""
    try:
        ends = celkinds.ends_at(obj)
    except EngineError:
        yield "unreadable"
        return
    if ends is None:
        yield "no expiry"
    elif now >= ends:
        yield "expired"
    known = {reference_of(one) for one in rules if is_of_cel(one)}
    for one in celkinds.named_policies(obj):
        if rules and is_of_cel(one) and reference_of(one) not in known:
            yield "orphaned"


def _by_use(obj: Object, usage: Usage, now: datetime) -> Iterator[str]:
    created = instant(word(obj, "metadata", "creationTimestamp"))
    if not usage.known or created is None or now - created < YOUNG:
        return
    if not usage.count:
        yield "unused"
    elif usage.last is not None and now - usage.last > STALE_AFTER:
        yield "stale"


def _by_reach(obj: Object) -> Iterator[str]:
    """Yield why an exception covers more than somebody can oversee: wildcard rules or kinds, or objects without a limit."""
    for named in items(obj, "spec", "exceptions"):
        names = named.get("ruleNames")
        if "*" in word(named, "policyName") or "*" in (names if isinstance(names, list) else []):
            yield "over-broad"
    if celkinds.is_cel(obj) and not celkinds.expressions(obj):
        yield "over-broad"
    match = part(obj, "spec", "match")
    for entry in (*items(match, "any"), *items(match, "all")):
        resources = part(entry, "resources")
        kinds = _list(resources, "kinds")
        if any(map(_is_all, kinds)) or not _is_limited(entry, resources):
            yield "over-broad"


def _is_limited(entry: Object, resources: Object) -> bool:
    names = [*_list(resources, "names"), *_list(resources, "namespaces"), resources.get("name")]
    selectors = (resources.get("selector"), resources.get("namespaceSelector"))
    limits = [name for name in names if name and name != "*"]
    return bool(limits or any(selectors) or entry.get("subjects") or entry.get("roles"))


def _list(block: Object, name: str) -> Iterable[object]:
    value = block.get(name)
    return value if isinstance(value, list) else ()


def _is_all(kind: object) -> bool:
    return str(kind).rpartition("/")[2] == "*"
