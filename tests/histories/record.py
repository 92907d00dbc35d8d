"""What happened in a history: what people tried and were told, and every version of what was stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

STORED, REFUSED, UNKNOWN = "stored", "refused", "unknown"


@dataclass(slots=True)
class Attempt:
    """One request of a person; `codes` are what it carried, `answer` what was said, `uid` whose object was stored."""

    began: float
    user: str
    what: str
    obj: dict[str, Any]
    codes: tuple[str, ...] = ()
    dry_run: bool = False
    outcome: str = UNKNOWN
    answer: str = ""
    uid: str = ""
    ended: float = 0.0

    def __str__(self) -> str:
        carried = f" with {','.join(code[:4] for code in self.codes)}" if self.codes else ""
        dry = " (dry run)" if self.dry_run else ""
        metadata = self.obj.get("metadata") or {}
        name = metadata.get("name") or metadata.get("generateName")
        return f"{self.began:7.2f}-{self.ended:7.2f} {self.user}: {self.what} {self.obj.get('kind')} {metadata.get('namespace')}/{name}{carried}{dry}: {self.outcome} {self.answer.splitlines()[0][:160] if self.answer else ''}"


@dataclass(slots=True)
class Version:
    """One version of an object: when it was stored (`clock` by the calendar), what happened to it, and how it then was.

    `until` is when the next version took its place.
    """

    at: float
    clock: datetime
    type: str
    object: dict[str, Any]
    until: float = float("inf")

    @property
    def uid(self) -> str:
        return str(self.object["metadata"].get("uid") or "")


@dataclass(slots=True)
class History:
    """Everything that happened, and notes of what the nemesis did; `versions` are by the plural of the kind."""

    seed: int
    attempts: list[Attempt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    versions: dict[str, list[Version]] = field(default_factory=dict)
    older: frozenset[str] = frozenset()
    steps_clock: bool = False

    def stored(self, plural: str, version: Version) -> None:
        """Note a version of an object."""
        versions = self.versions.setdefault(plural, [])
        for one in reversed(versions):
            if one.uid == version.uid:
                one.until = version.at
                break
        versions.append(version)

    def lines(self) -> list[str]:
        """Return the history as text, in the order of what began first."""
        told = [(one.began, str(one)) for one in self.attempts]
        told += [(float(one.split()[0]), one) for one in self.notes]
        return [text for _, text in sorted(told)]

    def last(self, plural: str) -> dict[str, dict[str, Any]]:
        """Return the objects of a kind that are there at the end, by UID."""
        found: dict[str, dict[str, Any]] = {}
        for one in self.versions.get(plural, ()):
            if one.type == "DELETED":
                found.pop(one.uid, None)
            else:
                found[one.uid] = one.object
        return found
