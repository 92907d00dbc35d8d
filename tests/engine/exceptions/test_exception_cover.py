"""When an exception covers a rule, and when it does not, to the microsecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from engine.errors import EvaluationError, LimitError, PolicyError
from engine.exceptions import Concern, audit_exception, compile_exception, covers, expires_at
from engine.model import PolicyException, PolicyReference, UserInfo, review_of

if TYPE_CHECKING:
    from engine.model import Review

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
PODS = {"any": [{"resources": {"kinds": ["Pod"], "names": ["web*"]}}]}
EXPIRES = "kpolicy.io/expires-at"
TTL = "cleanup.kyverno.io/ttl"


def exception(*references: tuple[str, tuple[str, ...]], **fields: Any) -> PolicyException:
    named = tuple(PolicyReference(*item) for item in references or (("p", ("r",)),))
    given = {"match": PODS, "references": named} | fields
    return PolicyException(name="e", namespace="n", **given)


def pod(name: str = "web-1", **fields: Any) -> Review:
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "other"}}
    return review_of(obj, **fields)


def met(_conditions: Any) -> bool:
    return True


def is_covered(
    exc: PolicyException,
    *,
    policy: str = "p",
    rule: str = "r",
    review: Review | None = None,
    now: datetime = NOON,
    check: Any = met,
) -> bool:
    return covers(compile_exception(exc), policy, rule, review or pod(), now, check)


def test_a_matching_exception_covers_in_any_namespace() -> None:
    assert is_covered(exception())


@pytest.mark.parametrize(
    ("references", "policy", "rule"),
    [
        ([("p", ("r",))], "p", "r"),
        ([("p", ("x", "r*"))], "p", "rule"),
        ([("p", ("*",))], "p", "autogen-r"),
        ([("p", ("autogen-?",))], "p", "autogen-r"),
        ([("n/p", ("r",))], "n/p", "r"),
        ([("q", ("x",)), ("p", ("r",))], "p", "r"),
        ([("p", ("x",)), ("p", ("r",))], "p", "r"),
    ],
)
def test_names_that_are_meant(references: Any, policy: str, rule: str) -> None:
    assert is_covered(exception(*references), policy=policy, rule=rule)


@pytest.mark.parametrize(
    ("references", "policy", "rule"),
    [
        ([("p", ("r",))], "p", "autogen-r"),
        ([("p", ("r",))], "p", "R"),
        ([("p", ("r",))], "q", "r"),
        ([("p*", ("r",))], "pq", "r"),
        ([("*", ("*",))], "p", "r"),
        ([("p", ("r",))], "n/p", "r"),
        ([("n/p", ("r",))], "p", "r"),
        ([("p", ())], "p", "r"),
        ([("p", ("",))], "p", "r"),
        ([("q", ("r",)), ("p", ("x",))], "p", "r"),
    ],
)
def test_names_that_are_not_meant(references: Any, policy: str, rule: str) -> None:
    assert not is_covered(exception(*references), policy=policy, rule=rule)


def test_the_object_must_match() -> None:
    assert not is_covered(exception(), review=pod("db"))
    assert not is_covered(exception(match={}))
    assert not is_covered(exception(match={"any": [{}]}))


def test_subresources_can_be_excepted() -> None:
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
    match = {"any": [{"resources": {"kinds": ["Pod/exec"]}}]}
    request = review_of(obj, subresource="exec")

    assert is_covered(exception(match=match), review=request)
    assert not is_covered(exception(match=match), review=pod())
    assert not is_covered(exception(), review=request)


def test_the_requester_counts_where_the_exception_names_one() -> None:
    match = {"any": [{**PODS["any"][0], "subjects": [{"kind": "User", "name": "jane"}]}]}

    assert is_covered(exception(match=match), review=pod(user=UserInfo(username="jane")))
    assert not is_covered(exception(match=match), review=pod(user=UserInfo(username="bob")))
    assert not is_covered(exception(match=match), review=pod())


def test_conditions_decide_last_and_an_error_is_a_no() -> None:
    asked: list[Any] = []
    conditions = {"all": [{"key": "a", "operator": "Equals", "value": "a"}]}

    def record(given: Any) -> bool:
        asked.append(given)
        return True

    def broken(_given: Any) -> bool:
        raise LimitError("too much")

    def unknown(_given: Any) -> bool:
        raise EvaluationError("no such key")

    assert is_covered(exception(conditions=conditions), check=record)
    assert asked == [conditions]
    assert not is_covered(exception(conditions=conditions), check=lambda _given: False)
    assert not is_covered(exception(conditions=conditions), check=broken)
    assert not is_covered(exception(conditions=conditions), check=unknown)
    assert is_covered(exception(), check=broken)
    asked.clear()
    assert not is_covered(exception(conditions=conditions), check=record, review=pod("db"))
    assert not is_covered(exception(conditions=conditions), check=record, rule="x")
    assert asked == []


def test_empty_conditions_are_still_asked() -> None:
    assert not is_covered(exception(conditions={}), check=lambda _given: False)


def test_it_covers_until_the_instant_of_its_expiry() -> None:
    limited = exception(annotations={EXPIRES: "2026-01-01T12:00:00Z"})

    assert is_covered(limited, now=NOON - TICK)
    assert not is_covered(limited, now=NOON)
    assert not is_covered(limited, now=NOON + TICK)


def test_an_expiry_may_name_another_zone() -> None:
    assert expires_at(exception(annotations={EXPIRES: "2026-01-01T14:00:00+02:00"})) == NOON


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-13-01T00:00:00Z", "2026-01-01T12:00:00", None, 5]
)
def test_an_expiry_that_cannot_be_read_ends_the_exception(text: Any) -> None:
    limited = exception(annotations={EXPIRES: text})

    assert not is_covered(limited)
    assert not is_covered(limited, now=datetime(1, 1, 1, tzinfo=UTC))


def test_a_ttl_counts_from_creation() -> None:
    limited = exception(labels={TTL: "2h"}, created_at="2026-01-01T10:00:00Z")

    assert expires_at(limited) == NOON
    assert is_covered(limited, now=NOON - TICK)
    assert not is_covered(limited, now=NOON)


def test_a_ttl_may_be_an_instant() -> None:
    assert expires_at(exception(labels={TTL: "2026-01-01T120000Z"})) == NOON


@pytest.mark.parametrize(("ttl", "created"), [("2h", ""), ("nonsense", "2026-01-01T10:00:00Z")])
def test_a_ttl_without_a_start_or_a_meaning_limits_nothing(ttl: str, created: str) -> None:
    assert expires_at(exception(labels={TTL: ttl}, created_at=created)) is None
    assert is_covered(exception(labels={TTL: ttl}, created_at=created))


@pytest.mark.parametrize(
    ("annotation", "ttl", "end"),
    [
        ("2026-01-01T12:00:00Z", "9h", NOON),
        ("2026-01-01T23:00:00Z", "2h", NOON),
        ("2026-01-01T12:00:00Z", "nonsense", NOON),
    ],
)
def test_the_earlier_end_counts(annotation: str, ttl: str, end: datetime) -> None:
    limited = exception(
        annotations={EXPIRES: annotation}, labels={TTL: ttl}, created_at="2026-01-01T10:00:00Z"
    )

    assert expires_at(limited) == end


def test_without_a_limit_it_stands() -> None:
    compiled = compile_exception(exception())

    assert compiled.expires_at is None
    assert not compiled.is_expired(datetime.max.replace(tzinfo=UTC))
    assert compiled.key == "n/e"


def test_pod_security_controls_are_passed_on() -> None:
    controls = ({"controlName": "Seccomp"},)

    assert compile_exception(exception(pod_security=controls)).pod_security == controls


def test_a_match_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(PolicyError):
        compile_exception(exception(match={"any": [{"resources": {"kinds": "Pod"}}]}))


def test_remarks_name_what_is_expired_orphaned_or_endless() -> None:
    endless = exception(("gone", ("x",)), ("p", ("r", "x")))
    expired = exception(("p", ("nope",)), annotations={EXPIRES: "2026-01-01T12:00:00Z"})
    fine = exception(annotations={EXPIRES: "2026-01-01T12:00:01Z"})
    rules = {"p": ["r", "autogen-r"]}

    assert [list(audit_exception(one, rules, NOON)) for one in (endless, expired, fine)] == [
        [Concern.NO_EXPIRY, Concern.NO_SUCH_POLICY],
        [Concern.EXPIRED, Concern.NO_SUCH_RULE],
        [],
    ]


@pytest.mark.parametrize(
    "stamp", ["2026-01-01T12:00:00Z", "2025-12-31T00:00:00Z", "not an instant"]
)
def test_an_exception_that_is_being_deleted_covers_nothing_although_something_holds_it(stamp: str):
    going = {"metadata": {"deletionTimestamp": stamp, "finalizers": ["example.org/hold"]}}
    assert not is_covered(exception(raw=going))
    later = exception(raw=going, annotations={EXPIRES: "2030-01-01T00:00:00Z"})
    assert not is_covered(later)
    assert is_covered(exception(raw={"metadata": {}}))
