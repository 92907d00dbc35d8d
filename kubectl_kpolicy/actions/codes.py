"""Issuing codes and bringing them along, for the console: what a form says becomes one, and a code exists only in what is returned.

INVARIANT: a code is never part of a text that is logged, said or kept; `Issued` hides it from every text of itself.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codes import canonical, issued_code, shown
from engine.errors import EngineError
from engine.fields import word
from engine.grants import parse_issued
from engine.grants.issuing import own_refusals
from engine.grants.subjects import subject_text
from kubectl_kpolicy.codes import bringing, issuing
from kubectl_kpolicy.output.diagnostics import sentence
from kubectl_kpolicy.session.targets import Target, with_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from controllers.kube import Client
    from engine.model import Object
    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.session.identity import Identity

    from .executor import ActionExecutor

SYSTEM = "kyverno"
"""Where kpolicy keeps codes unless the cluster shows otherwise."""
SYNTAX = "a code has twenty letters and digits, as XXXX-XXXX-XXXX-XXXX-XXXX"


class Issued:
    """A code that was just issued; `about` says in words what it is good for, `code` is told once."""

    def __init__(self, name: str, code: str, about: str) -> None:
        self.name, self.about = name, about
        self._code = code

    def __repr__(self) -> str:
        return f"<Issued {self.name}>"

    def take(self) -> str:
        """Return the code, and forget it."""
        code, self._code = self._code, ""
        return code


class CodeActions:
    """Issues codes under one's own name, and applies objects with them."""

    def __init__(
        self, client: Client, me: Identity, now: Callable[[], datetime], world: ClusterCache
    ) -> None:
        self._client, self._now, self._world = client, now, world
        self._me, self.user = me, me.user

    def objection(self, form: Mapping[str, str]) -> str:
        """Return what is wrong with a form as it stands, empty when nothing is."""
        try:
            _, _, kind, _ = issuing.read_binding(form.get("bind", ""))
            refusals = own_refusals(parse_issued(self._document("", form, kind), self._now()))
        except EngineError as error:
            return sentence(error)
        return str(refusals[0]).removeprefix("refused: ") if refusals else ""

    def _document(self, code: str, form: Mapping[str, str], kind: str) -> Object:
        """Return the object of a code as a form says it; raises EngineError."""
        policy, rules, _, name = issuing.read_binding(form["bind"])
        ends = self._now() + issuing.read_ttl(form.get("ttl", ""))
        place, reason = form.get("namespace", ""), form.get("reason", "")
        wanted = issuing.Wanted(form.get("user", ""), policy, rules, kind, name, place, reason)
        return issuing.document(code, wanted, self.user, ends, self._system(), self._me.groups)

    async def issue(self, form: Mapping[str, str]) -> Issued:
        """Issue a code for `user`, `bind`, `namespace`, `ttl` and `reason` of a form; raises EngineError."""
        policy, rules, kind, name = issuing.read_binding(form["bind"])
        [target] = await with_kinds(self._client, [Target(kind, name)])
        code = issued_code(secrets.token_bytes(32))
        obj = self._document(code, form, target.kind)
        made = await issuing.issue(self._client, obj, self._now())
        about = (
            f"for {form['user']}, to get {target.kind}/{name} in {form['namespace']} past\n"
            f"{subject_text(policy, rules)}, once, until {made['spec']['expiresAt'][11:16]} UTC"
        )
        return Issued(made["metadata"]["name"], shown(code), about)

    async def redeem(self, form: Mapping[str, str]) -> str:
        """Apply the object in `file` with `code` and return what was done; raises EngineError."""
        code = canonical(form["code"].strip())
        if code is None:
            raise EngineError("that is no code", help=SYNTAX)
        obj = bringing.object_in(str(Path(form["file"]).expanduser()))
        stored = await bringing.bring(
            self._client, bringing.carrying(obj, code), form.get("namespace") or "default"
        )
        return f"{stored.get('kind')}/{word(stored, 'metadata', 'name')} passed with the code"

    def _system(self) -> str:
        """Return the namespace in which the cluster keeps codes and records."""
        kept = (*self._world.objects("codes"), *self._world.objects("auditsegments"))
        return next((word(one, "metadata", "namespace") for one in kept), SYSTEM)


async def void(doer: ActionExecutor, row: Row, _form: Mapping[str, str]) -> str:
    """Make a code useless; raises EngineError."""
    if word(row.object, "kind") != "OneTimeCode":
        raise EngineError("a journal's code is taken out by its policy, or with kubectl edit")
    await issuing.void(doer.client, row.text("name"), row.text("namespace"), doer.user)
    return f"void: {row.text('id')}"
