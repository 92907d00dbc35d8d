"""The screens, each declared once: its rows and columns, its place among the others, and the commands that show the same.

Keys, palette, jump letters, crumbs, completion and the help of errors follow from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.record import record
from kubectl_kpolicy.cluster import (
    audit,
    blocks,
    cleanup,
    codes,
    exceptions,
    grants,
    health,
    policies,
    violations,
)

if TYPE_CHECKING:
    from kubectl_kpolicy.output.rows import Listing


@record
class Screen:
    """A screen: `letter` jumps to it, `command` lists what it shows, `describe` tells about a row of it.

    `called` is one thing on it in words, set where `is_named` tells that things have names by which commands choose. A screen
    without a `listing` has a body of its own. `everywhere` is for commands that know no namespaces.
    """

    name: str
    letter: str
    command: str
    describe: str = ""
    listing: Listing | None = None
    called: str = ""
    is_named: bool = False
    everywhere: bool = False


SCREENS: dict[str, Screen] = {
    one.name: one
    for one in (
        Screen("pulse", "u", "status", everywhere=True),
        Screen("violations", "v", "violations list", "violations describe {resource}[ -n {namespace}]", violations.LISTING, "violation"),
        Screen("blocks", "b", "violations list --blocks", "violations list --blocks {resource}[ -n {namespace}]", blocks.LISTING, "denied request"),
        Screen("policies", "p", "policies list", "policies describe {name}[ -n {namespace}]", policies.LISTING, "policy", is_named=True),
        Screen("explain", "e", "violations list --all"),
        Screen("exceptions", "x", "exceptions list", "exceptions describe {name}[ -n {namespace}]", exceptions.LISTING, "exception", is_named=True),
        Screen("grants", "g", "grant list", "grant describe {name}[ -n {namespace}]", grants.GRANTS, "grant", is_named=True),
        Screen("inbox", "i", "grant list --to-approve", "grant describe {name}[ -n {namespace}]", grants.INBOX, "request"),
        Screen("codes", "o", "otp list", "otp describe {name}", codes.LISTING, "code", is_named=True),
        Screen("cleanup", "c", "cleanup list", "cleanup describe {object}[ -n {namespace}]", cleanup.LISTING, "clean-up", is_named=True),
        Screen("audit", "a", "audit log", "audit log --object {object}", audit.LISTING, "record"),
        Screen("health", "h", "doctor", "doctor", health.LISTING, "check", everywhere=True),
    )
}  # fmt: skip
"""In the order of `<` and `>`."""


class _Listings(Mapping[str, "Listing"]):
    """The listings of those screens that have one, by noun."""

    def __getitem__(self, noun: str) -> Listing:
        found = SCREENS[noun].listing
        if found is None:
            raise KeyError(noun)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name, one in SCREENS.items() if one.listing is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


LISTINGS: Mapping[str, Listing] = _Listings()
"""What commands list and screens show."""


def listing_named(word: str) -> Listing | None:
    """Return a listing by its noun or one of its aliases."""
    for listing in LISTINGS.values():
        if word in (listing.noun, *listing.aliases):
            return listing
    return None


def own_command(name: str) -> Screen | None:
    """Return the screen that gives a command of its name, because no command has one of its own."""
    screen = SCREENS.get(name)
    return screen if screen and screen.listing and screen.command == f"{name} list" else None
