"""Which rules concern which objects: match and exclude blocks, kinds, selectors and requesters, compiled once."""

from .kinds import KindFilter, is_version, parse_kind
from .matcher import Matcher, compile_any_all, compile_match
from .selectors import compile_selector, key_error, value_error

__all__ = [
    "KindFilter",
    "Matcher",
    "compile_any_all",
    "compile_match",
    "compile_selector",
    "is_version",
    "key_error",
    "parse_kind",
    "value_error",
]
