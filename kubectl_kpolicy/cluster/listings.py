"""All listings by noun and alias: what commands list and screens show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import audit, blocks, cleanup, codes, exceptions, grants, health, policies, violations

if TYPE_CHECKING:
    from kubectl_kpolicy.output.rows import Listing

LISTINGS: dict[str, Listing] = {
    listing.noun: listing
    for listing in (
        violations.LISTING,
        blocks.LISTING,
        policies.LISTING,
        exceptions.LISTING,
        grants.GRANTS,
        grants.INBOX,
        codes.LISTING,
        cleanup.LISTING,
        audit.LISTING,
        health.LISTING,
    )
}


def listing_named(word: str) -> Listing | None:
    """Return a listing by its noun or one of its aliases."""
    for listing in LISTINGS.values():
        if word in (listing.noun, *listing.aliases):
            return listing
    return None
