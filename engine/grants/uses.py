"""How often a grant may be used, as its exception says it: what is counted where, for the webhook that must know at once.

A grant with a number of uses is counted by places: use number 1, 2, … each is taken at most once, by whoever creates its
record first. One without is only counted for show, and may be counted late.
"""

from __future__ import annotations

import hashlib
from base64 import b32encode
from typing import TYPE_CHECKING, Final

from engine.reach import GRANT_ANNOTATION
from engine.record import record

from .cause import USES_ANNOTATION

if TYPE_CHECKING:
    from engine.model import PolicyException
    from engine.model.celpolicies import CelException

UNLIMITED: Final = 0
NONE_LEFT: Final = -1
"""What a number that cannot be read stands for: somebody meant to limit the grant."""
_LONGEST: Final = 9
_NAME: Final = 26


@record
class Granted:
    """An exception (by its identity) that a Grant (by `namespace/name` and UID) caused, and how many requests it may let through."""

    exception: str
    grant: str
    uid: str
    most: int = UNLIMITED

    @property
    def is_limited(self) -> bool:
        """Whether each use has to be taken before a request passes."""
        return self.most != UNLIMITED

    def place(self, number: int) -> str:
        """Return the object name of use `number`, from 1."""
        text = f"kpolicy grant use\0{self.uid}\0{number}"
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        return f"grant-use-{b32encode(digest).decode().lower()[:_NAME]}"


def granted_by(exception: PolicyException | CelException) -> Granted | None:
    """Return the grant behind an exception, None for one that people wrote.

    A limited one that no longer tells whose it is lets nothing through, because its uses could not be counted.
    """
    grant = exception.annotations.get(GRANT_ANNOTATION)
    if not grant:
        return None
    most = _limit(exception.annotations.get(USES_ANNOTATION))
    uid = _owner(exception)
    if not uid:
        return Granted(exception.identity, grant, "", NONE_LEFT) if most != UNLIMITED else None
    return Granted(exception.identity, grant, uid, most)


def _limit(text: str | None) -> int:
    if text is None:
        return UNLIMITED
    is_number = text.isascii() and text.isdecimal() and len(text) <= _LONGEST
    return (int(text) if is_number else 0) or NONE_LEFT


def _owner(exception: PolicyException | CelException) -> str:
    metadata = exception.raw.get("metadata") or {}
    owners = metadata.get("ownerReferences")
    for one in owners if isinstance(owners, list) else ():
        if isinstance(one, dict) and one.get("kind") == "Grant" and one.get("uid"):
            return str(one["uid"])
    return ""
