"""Renewal of certificates: overlap, never a leaf that nobody trusts, never a leaf that outlives its authority."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from controllers.webhook.certificates import (
    Certificates,
    Pair,
    expiry,
    first_certificates,
    is_usable,
    names_of,
    new_authority,
    renewed,
    trusts,
)

NAMES = ["kyverno-svc.kyverno.svc", "kyverno-svc", "127.0.0.1"]
START = datetime(2026, 11, 21, tzinfo=UTC)


def made() -> Certificates:
    return first_certificates(NAMES, START)


def test_nothing_changes_while_nothing_is_due() -> None:
    first = made()

    assert renewed(first, NAMES, START + timedelta(days=100), trusted=first.bundle) is first


def test_the_leaf_is_made_anew_before_it_ends() -> None:
    first = made()
    later = START + timedelta(days=136)
    second = renewed(first, NAMES, later, trusted=first.bundle)

    assert second.authority == first.authority
    assert expiry(second.leaf.certificate) == later + timedelta(days=150)


def test_a_new_authority_stands_beside_the_old_one_until_everybody_trusts_it() -> None:
    first = made()
    due = START + timedelta(days=351)
    first = renewed(first, NAMES, START + timedelta(days=300), trusted=first.bundle)
    second = renewed(first, NAMES, due, trusted=first.bundle)

    assert second.bundle.count(b"BEGIN CERTIFICATE") == 2
    assert second.leaf == first.leaf
    third = renewed(second, NAMES, due, trusted=second.bundle)
    assert third.leaf != second.leaf
    assert is_usable(third, due)


def test_an_expired_predecessor_is_dropped_from_the_bundle() -> None:
    first = made()
    second = renewed(first, NAMES, START + timedelta(days=351), trusted=b"")
    third = renewed(second, NAMES, START + timedelta(days=366), trusted=second.bundle)

    assert third.bundle.count(b"BEGIN CERTIFICATE") == 1
    assert is_usable(third, START + timedelta(days=366))


def test_a_leaf_never_outlives_its_authority() -> None:
    first = made()
    late = renewed(first, NAMES, START + timedelta(days=340), trusted=first.bundle)

    assert expiry(late.leaf.certificate) <= expiry(first.authority.certificate)


def test_a_leaf_for_other_names_is_made_anew() -> None:
    first = made()
    second = renewed(first, [*NAMES, "example.org"], START, trusted=first.bundle)

    assert "example.org" in names_of(second.leaf.certificate)


def test_in_twenty_years_every_leaf_is_trusted_by_those_who_still_hold_the_bundle_of_before() -> (
    None
):
    current, now = made(), START
    trusted = current.bundle
    for _ in range(20 * 73):
        now += timedelta(days=5)
        following = renewed(current, NAMES, now, trusted=trusted)
        assert trusts(trusted, following.leaf.certificate)
        assert is_usable(following, now)
        current, trusted = following, following.bundle


def test_keys_that_do_not_belong_to_their_certificates_are_not_usable() -> None:
    first, other = made(), new_authority(START)

    assert is_usable(first, START)
    assert not is_usable(Certificates(Pair(first.bundle, other.key), first.leaf), START)
    assert not is_usable(Certificates(other, first.leaf), START)
    assert not is_usable(Certificates(first.authority, Pair(b"", b"")), START)
    assert not is_usable(first, START + timedelta(days=151))
