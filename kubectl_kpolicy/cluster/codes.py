"""Codes: which were issued, for whom, what for, and who used them when. Never a code that still works.

Two kinds are read: OneTimeCode objects with their CodeUse, and the journal of a policy that writes `random()` codes into a
ConfigMap. Of a journal's unused code only the first letters are kept, because whoever reads it could use it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from controllers.store.audit import BROUGHT_BY
from engine import vocabulary
from engine.fields import items, part, word
from kubectl_kpolicy.output.rows import Cell, Column, Listing, Row, Shape
from kubectl_kpolicy.output.time_format import instant

if TYPE_CHECKING:
    from datetime import datetime

    from engine.model import Object

    from .cache import ClusterCache

_USED = re.compile(
    r"(?P<code>[^-\s]+)-(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z?)-(?P<user>.+)"
)
_ENTRY = re.compile(r"^\s*-\s*[\"']?([^\"'\n]+?)[\"']?\s*$", re.MULTILINE)
_DOTS = "••••"


def code_rows(world: ClusterCache, now: datetime) -> list[Row]:
    """Return a row for each code that was issued, and for each entry of the journal."""
    uses = {word(use, "spec", "code"): use for use in world.objects("codeuses")}
    rows = [_row(code, uses, now) for code in world.objects("codes")]
    for journal in world.objects("journal"):
        rows += world.cached("journal", journal, journal_rows)
    return rows


def masked(code: str) -> str:
    """Return the few letters of a code by which people tell it from others."""
    return f"{code[:2]}{_DOTS}"


def journal_rows(journal: Object) -> list[Row]:
    """Return a row for each entry of a journal; the object behind a row is the journal without its codes."""
    place = f"{word(journal, 'metadata', 'namespace')}/{word(journal, 'metadata', 'name')}"
    rows = []
    for number, entry in enumerate(_ENTRY.findall(word(journal, "data", "codes"))):
        used = _USED.fullmatch(entry)
        code = used["code"] if used else entry
        at = instant(used["at"]) if used else None
        cells: dict[str, Cell] = {
            "id": code if used else masked(code),
            "state": "used" if used else "unused",
            "left": None,
            "user": "whoever holds it",
            "bound": f"journal {place}",
            "uses": 1 if used else 0,
            "issuer": "",
            "usedby": used["user"] if used else "",
            "usedat": at,
            "namespace": word(journal, "metadata", "namespace"),
            "name": f"{place}#{number}",
        }
        rows.append(Row(f"journal/{place}/{number}", cells, _receipt(cells)))
    return rows


def _receipt(cells: dict[str, Cell]) -> Object:
    """Return what a journal's entry is for machines: everything but the code."""
    at = cells["usedat"]
    return {
        "apiVersion": vocabulary.KPOLICY,
        "kind": "JournalEntry",
        "metadata": {"name": str(cells["name"]).replace("/", "-").replace("#", "-")},
        "id": cells["id"],
        "state": cells["state"],
        **({"usedBy": cells["usedby"], "usedAt": str(at)} if cells["state"] == "used" else {}),
    }


def _row(code: Object, uses: dict[str, Object], now: datetime) -> Row:
    namespace, name = word(code, "metadata", "namespace"), word(code, "metadata", "name")
    spec, status = part(code, "spec"), part(code, "status")
    ends = instant(word(spec, "expiresAt") or word(status, "expiresAt"))
    use = uses.get(name) or uses.get(word(spec, "id")) or {}
    count = status.get("uses")
    used_at = instant(word(use, "spec", "usedAt") or word(status, "usedAt"))
    state = (word(status, "state") or ("used" if use else "issued")).lower()
    if state in ("issued", "active") and ends is not None and now >= ends:
        state = "expired"
    cells: dict[str, Cell] = {
        "id": word(spec, "id") or name,
        "state": state,
        "left": ends if state in ("issued", "active", "pending") else None,
        "user": word(spec, "user") or word(spec, "forUser"),
        "bound": _binding(spec),
        "uses": count if isinstance(count, int) else int(bool(use)),
        "tries": len(part(use, "status").get(BROUGHT_BY) or ()) if use else None,
        "issuer": word(spec, "issuedBy") or word(status, "issuedBy"),
        "issued": instant(word(code, "metadata", "creationTimestamp")),
        "usedby": word(use, "spec", "user") or word(status, "usedBy"),
        "usedat": used_at,
        "from": word(use, "spec", "object", "name"),
        "namespace": namespace,
        "name": name,
        "place": word(part(part(spec, "binding"), "object"), "namespace"),
    }
    return Row(f"OneTimeCode/{namespace}/{name}", cells, code)


def _binding(spec: Object) -> str:
    binding = part(spec, "binding") or spec
    policy = word(binding, "policy") or word(binding, "policy", "name")
    rules = binding.get("rules")
    rule = ",".join(map(str, rules)) if isinstance(rules, list) else word(binding, "rule")
    target = part(binding, "object") or part(binding, "target")
    place = "/".join(filter(None, (word(target, "kind"), word(target, "name"))))
    several = [word(one, "policy") for one in items(binding, "policies")]
    left = f"{policy or ','.join(several)}/{rule}" if policy or several else rule
    return f"{place} past {left}" if place else left


LISTING = Listing(
    noun="codes",
    title="Codes",
    aliases=("o", "otp", "code"),
    columns=(
        Column("id", "ID", most=32),
        Column("state", "STATE", Shape.STATE),
        Column("left", "LEFT", Shape.LEFT, since="issued"),
        Column("user", "FOR-USER", most=24, aliases=("for",)),
        Column("bound", "BOUND-TO", most=44, grows=True),
        Column("uses", "USES", Shape.NUMBER, narrow=False),
        Column("tries", "TRIES", Shape.NUMBER, narrow=False),
        Column("issuer", "ISSUED-BY", most=20, narrow=False),
        Column("usedby", "USED-BY", most=20, narrow=False),
        Column("issued", "ISSUED", Shape.AGE, wide=True),
        Column("usedat", "USED-AT", Shape.TIME, wide=True),
        Column("from", "FROM", wide=True, most=24),
        Column("namespace", "NS", wide=True, aliases=("ns",)),
    ),
    rows=code_rows,
    needs=("codes",),
    wants=("codeuses", "journal"),
    sort=("left", "-issued"),
    groups=("state", "user"),
    failures=lambda row: row.cells["state"] in ("issued", "active", "unused"),
    empty="no code was issued; codes that denials mint are not stored anywhere until they are used",
    next_step="issue one with n or `kubectl kpolicy otp issue`; name a journal with `--journal NAMESPACE/NAME`",
)
