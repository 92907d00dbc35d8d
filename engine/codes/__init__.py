"""One-time codes without storage: what a code is bound to, how it is made, and whether a text that somebody brings is one.

A code is a keyed hash of everything it may be used for, so that a denial can hand one out without writing anything, and a
code seen by somebody else is of no use to them. That it works only once is the caller's part: it creates an object named
`use_name(code)` and the first one wins.
"""

from .binding import Binding, fingerprint
from .minting import (
    Key,
    is_code,
    issued_code,
    issued_name,
    mint,
    slot_of,
    use_name,
    verifier_of,
    verify,
)
from .spelling import canonical, shown
from .violations import (
    CODE_ANNOTATION,
    HIDDEN,
    body_digest,
    carried_codes,
    is_left_as_it_was,
    parts_read,
    violation_of,
    without_codes,
)

__all__ = [
    "CODE_ANNOTATION",
    "HIDDEN",
    "Binding",
    "Key",
    "body_digest",
    "canonical",
    "carried_codes",
    "fingerprint",
    "is_code",
    "is_left_as_it_was",
    "issued_code",
    "issued_name",
    "mint",
    "parts_read",
    "shown",
    "slot_of",
    "use_name",
    "verifier_of",
    "verify",
    "violation_of",
    "without_codes",
]
