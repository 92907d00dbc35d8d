"""Named formats of Kubernetes: `format.dns1123Label().validate(name)` gives the reasons why it is none, or nothing."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from engine.errors import EvaluationError
from engine.lang import golayout
from engine.lang.cel.values import NONE, Message, Optional

from . import urls
from .registry import KINDS, Library

LIBRARY: Final = Library(cost=40)
_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"{_LABEL.pattern}(?:\.{_LABEL.pattern})*")
_LABEL_1035: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_QUALIFIED: Final = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_UUID: Final = re.compile(
    r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DATETIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_SHORT: Final = 63
_LONG: Final = 253
_MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Format(Message):
    """A named format; equal by name."""

    name: str
    TYPE = "kubernetes.NamedFormat"


KINDS["Format"] = (Format,)


def _pattern(
    expression: re.Pattern[str], most: int, reason: str, *, prefix: bool = False
) -> Callable[[str], list[str]]:
    def check(text: str) -> list[str]:
        shown = text.removesuffix("-") + "a" if prefix and text.endswith("-") else text
        found = [f"must be no more than {most} characters"] if len(text) > most else []
        if len(text) > _MOST or not expression.fullmatch(shown):
            found.append(f"{reason} (regex used for validation is '{expression.pattern}')")
        return found

    return check


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    if len(parts) > 2:
        return [
            "a qualified name must consist of a name with an optional DNS subdomain prefix and '/'"
        ]
    found: list[str] = []
    if len(parts) == 2:
        found += [f"prefix part {reason}" for reason in _subdomain(parts[0])]
    name = parts[-1]
    if not name:
        return [*found, "name part must be non-empty"]
    return found + [f"name part {reason}" for reason in _name_part(name)]


def _byte(text: str) -> list[str]:
    try:
        b64decode(text.encode(), validate=True)
    except ValueError:
        return ["invalid base64"]
    return []


def _date(text: str) -> list[str]:
    return [] if _DATE.fullmatch(text) and _is_time(f"{text}T00:00:00Z") else ["invalid date"]


def _datetime(text: str) -> list[str]:
    is_one = _DATETIME.fullmatch(text) and _is_time(text.upper().replace(" ", "T"))
    return [] if is_one else ["invalid datetime"]


def _is_time(text: str) -> bool:
    try:
        golayout.parse_rfc3339(text)
    except EvaluationError:
        return False
    return True


_LABEL_REASON: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_REASON: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_1035_REASON: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_NAME_REASON: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_VALUE_REASON: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_subdomain = _pattern(_SUBDOMAIN, _LONG, _SUBDOMAIN_REASON)
_name_part = _pattern(_QUALIFIED, _SHORT, _NAME_REASON)
_value_part = _pattern(_QUALIFIED, _SHORT, _VALUE_REASON)

_FORMATS: Final[dict[str, Callable[[str], list[str]]]] = {
    "dns1123Label": _pattern(_LABEL, _SHORT, _LABEL_REASON),
    "dns1123Subdomain": _subdomain,
    "dns1035Label": _pattern(_LABEL_1035, _SHORT, _1035_REASON),
    "dns1123LabelPrefix": _pattern(_LABEL, _SHORT, _LABEL_REASON, prefix=True),
    "dns1123SubdomainPrefix": _pattern(_SUBDOMAIN, _LONG, _SUBDOMAIN_REASON, prefix=True),
    "dns1035LabelPrefix": _pattern(_LABEL_1035, _SHORT, _1035_REASON, prefix=True),
    "qualifiedName": _qualified_name,
    "labelValue": lambda text: _value_part(text) if text else [],
    "uri": lambda text: [] if urls.is_url(text) else ["invalid URI"],
    "uuid": lambda text: [] if _UUID.fullmatch(text) else ["does not match the UUID format"],
    "byte": _byte,
    "date": _date,
    "datetime": _datetime,
}


@LIBRARY.add("format.named(string) -> optional_type")
def _named(name: str) -> Optional:
    return Optional(Format(name)) if name in _FORMATS else NONE


@LIBRARY.add("Format.validate(string) -> optional_type")
def _validate(named: Format, text: str) -> Optional:
    reasons = _FORMATS[named.name](text)
    return Optional(reasons) if reasons else NONE


for _name in _FORMATS:
    LIBRARY.add(f"format.{_name}() -> Format")(partial(Format, _name))
