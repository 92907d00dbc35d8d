"""The id of a denial, by which somebody asks for an exception from it: what was denied, told in one word and signed.

It says nothing that the denial beside it does not say, and gives no right to anything: a request made by it is judged like
any other. The signature tells an id of ours from one that somebody made up to have another person ask for something else.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any, Final

from engine.codes import signed
from engine.model.kinds import is_of_cel
from engine.record import record

PREFIX: Final = "kb1."
_FIELDS: Final = 5
_LONGEST: Final = 4096


@record
class Block:
    """One policy's part of a denial; `policy` is its identity, and one written in CEL has no rules to name."""

    policy: str
    rules: tuple[str, ...]
    kind: str
    name: str
    namespace: str


def block_key(shared: bytes) -> bytes:
    """Return the key that ids are signed with, from the one that all replicas share."""
    return hmac.digest(shared, b"kpolicy block", "sha256")


def block_id(block: Block, key: bytes) -> str:
    """Return the id of a denial, `kb1.CONTENT.SIGNATURE`, signed with the `block_key`."""
    fields = [block.policy, list(block.rules), block.kind, block.name, block.namespace]
    return signed.signed(PREFIX, fields, key)


def is_signed(text: str, key: bytes) -> bool:
    """Tell, in constant time, whether a text is an id that was signed with the `block_key`."""
    return signed.is_signed(text, key)


def target_of(metadata: Mapping[str, Any], *, is_new: bool) -> str:
    """Return the name that a denied object is asked for by: a beginning with a wildcard where the rest is drawn by chance.

    The API server may have drawn the name of a new object already; the next attempt gets another one (A6).
    """
    name, beginning = str(metadata.get("name") or ""), str(metadata.get("generateName") or "")
    is_drawn = is_new and beginning and name.startswith(beginning)
    return f"{beginning}*" if is_drawn or not name else name


def read_block_id(text: str) -> Block | None:
    """Return what an id says, whoever signed it; None for what is no id."""
    fields = signed.fields_of(text, PREFIX, _LONGEST)
    if fields is None or len(fields) != _FIELDS:
        return None
    policy, rules, kind, name, namespace = fields
    texts = (policy, kind, name, namespace)
    if not isinstance(rules, list) or not all(isinstance(one, str) for one in (*texts, *rules)):
        return None
    is_whole = policy and kind and (rules or is_of_cel(policy))
    return Block(policy, tuple(rules), kind, name, namespace) if is_whole else None
