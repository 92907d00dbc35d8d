"""What Kubernetes accepts as a label key and a label value, with the API server's own words.

Selectors that break these rules match nothing when they are evaluated and are refused when a policy is checked; both
places ask here. Rules: `k8s.io/apimachinery/pkg/util/validation`.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_NAME_LIMIT = 63
_PREFIX_LIMIT = 253

_NAME_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_PREFIX_TEXT = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and"
    " must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def key_error(key: str) -> str | None:
    """Return what is wrong with a label key, or None."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return f"a qualified name {_NAME_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
    if slash:
        if not prefix:
            return "prefix part must be non-empty"
        if len(prefix) > _PREFIX_LIMIT:
            return f"prefix part must be no more than {_PREFIX_LIMIT} characters"
        if not _SUBDOMAIN.fullmatch(prefix):
            return _PREFIX_TEXT
    if not name:
        return "name part must be non-empty"
    if len(name) > _NAME_LIMIT:
        return f"name part must be no more than {_NAME_LIMIT} characters"
    return None if _NAME.fullmatch(name) else f"name part {_NAME_TEXT}"


def value_error(value: str) -> str | None:
    """Return what is wrong with a label value, or None."""
    if len(value) > _NAME_LIMIT:
        return f"must be no more than {_NAME_LIMIT} characters"
    return None if not value or _NAME.fullmatch(value) else _VALUE_TEXT
