"""Native admission policies that say the same as a policy of ours, for the API server to judge without asking us.

Pure: a policy and what excepts from it in, the documents of a policy and its binding out, or the reason why there are none.
What is made reaches no further than the policy, and where the two languages differ the policy stays with us.
"""

from .objects import (
    MUTATING,
    NATIVE_KINDS,
    VALIDATING,
    Documents,
    NotNative,
    asks_for_native,
    is_made_from,
    kind_for,
    name_for,
    names_of,
)
from .translating import translated

__all__ = [
    "MUTATING",
    "NATIVE_KINDS",
    "VALIDATING",
    "Documents",
    "NotNative",
    "asks_for_native",
    "is_made_from",
    "kind_for",
    "name_for",
    "names_of",
    "translated",
]
