"""Everything an evaluation may know besides policies and the object: instant, chance, answers, values given by hand."""

from __future__ import annotations

from base64 import b64decode
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.errors import EvaluationError
from engine.fields import part
from engine.lang.wildcard import has_wildcard
from engine.reach import Effect, Target, out_of_reach
from engine.record import record, replace
from engine.requestinfo import request_info

from . import lookups

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.lang.imagetext import RegistryDefaults
    from engine.manifests import Trust
    from engine.model import Json

_NONE: Mapping[Any, Any] = {}


@record
class Inputs:
    """Inputs of one evaluation.

    `now` is an aware UTC instant: expiry counts at it. `seed` feeds `random()`, as a
    function where making it takes work. `variables` are dotted paths set for the
    whole policy, `rule_values` and `foreach_values` those of a values file for (policy, rule), where foreach values are
    lists by element. `answers` hold what was looked up so far, `trust` the trust
    material for signatures. `within` is the namespace that questions are confined to, that of a namespaced policy.
    `resolve_values` says that values which hold `{{ … }}` are read as expressions, too, as Kyverno does. `disregarded` are
    exceptions, by their identity, that are not to count. `is_stored` says that objects come from an API server, which has seen to their
    fields. `registry` is what images without one mean (None: Docker Hub).
    """

    now: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    seed: bytes | Callable[[], bytes] = b""
    variables: Mapping[str, Json] = _NONE
    rule_values: Mapping[tuple[str, str], Mapping[str, Json]] = _NONE
    foreach_values: Mapping[tuple[str, str], Mapping[str, Sequence[Json]]] = _NONE
    answers: Mapping[lookups.Lookup, lookups.Answer] = _NONE
    trust: Trust | None = None
    within: str = ""
    resolve_values: bool = False
    disregarded: frozenset[str] = frozenset()
    is_stored: bool = False
    registry: RegistryDefaults | None = None

    def ask(self, lookup: lookups.Lookup) -> lookups.Answer:
        """Return the answer to `lookup`; raises LookupNeeded while there is none."""
        return self.ask_all((lookup,))[0]

    def ask_all(self, wanted: Sequence[lookups.Lookup]) -> tuple[lookups.Answer, ...]:
        """Return the answer to each of `wanted`; raises LookupNeeded for all of them that have none yet."""
        answers, missing = [], []
        for lookup in wanted:
            asked = marked(lookup, self.within) if self.within else lookup
            if self.within and (reason := refusal(lookup, self.within)):
                answers.append(lookups.Answer.failed(reason))
            elif (answer := self.answers.get(asked)) is not None:
                answers.append(answer)
            else:
                missing.append(asked)
        if missing:
            raise lookups.LookupNeeded(*missing)
        return tuple(answers)

    def public_key(self, secret: str) -> str:
        """Return the public key that a Secret (`namespace/name`) keeps as cosign does; raises EvaluationError, LookupNeeded."""
        namespace, _, name = secret.partition("/")
        answer = self.ask(lookups.ObjectLookup("v1", "Secret", namespace, name))
        kept = part(answer.value, "data").get("cosign.pub")
        with suppress(ValueError):
            if isinstance(kept, str):
                return b64decode(kept, validate=True).decode()
        lacks = "has no key `cosign.pub`" if answer.value else "is not known"
        reason = answer.error or f"secret `{secret}` {lacks}"
        raise EvaluationError(f"failed to load public key: {reason}")


def dotted_path(text: str) -> list[str]:
    """Split `a."b.c".d` into its parts, as the keys of values files are read (row K-07)."""
    parts, part, quoted = [], "", False
    for char in text:
        if char == '"':
            quoted = not quoted
        elif char == "." and not quoted:
            parts.append(part)
            part = ""
        else:
            part += char
    return [*parts, part]


# How far the questions of a namespaced policy reach: into its own namespace, and no further (row A-25).
#
# For `Inputs.ask`, which every question passes after its variables were put in, whatever part of a rule asked it. Lint says the
# same of what stands in a policy literally; only here is known what a variable made of it. Whoever may write a Policy in one
# namespace must not read others with the rights of whoever evaluates it.

_MARKED = (
    lookups.ServiceLookup, lookups.GlobalLookup, lookups.ImageLookup, lookups.SignatureLookup, lookups.TrustLookup, lookups.ObjectLookup, lookups.ListLookup,
)  # fmt: skip


def refusal(lookup: lookups.Lookup, namespace: str) -> str:
    """Return why a policy of `namespace` may not ask, empty when it may.

    Whether a kind of object has a namespace at all is known to whoever answers, who asks again.
    """
    match lookup:
        case lookups.ConfigMapLookup():
            target = Target("", "ConfigMap", True, lookup.namespace, lookup.name)
        case lookups.ApiCallLookup():
            found = _called(lookup)
            if found is None:
                return _text(namespace, f"`{lookup.url_path}`")
            target = found
        case lookups.ObjectLookup() if (lookup.api_version, lookup.kind) == ("v1", "Namespace"):
            target = Target("", "Namespace", False, lookup.namespace, lookup.name)
        case lookups.ObjectLookup() | lookups.ListLookup():
            group = lookup.api_version.rpartition("/")[0]
            is_open = not lookup.api_version or has_wildcard(lookup.api_version)
            target = Target(
                None if is_open else group, lookup.kind, None, lookup.namespace, lookup.name
            )
        case lookups.ImageLookup() | lookups.SignatureLookup():
            foreign = [one for one in lookup.secrets if not one.startswith(f"{namespace}/")]
            return _text(namespace, f"secret `{foreign[0]}`") if foreign else ""
        case _:
            return ""
    return out_of_reach(Effect.LOOK_UP, target, namespace) or ""


def marked(lookup: lookups.Lookup, namespace: str) -> lookups.Lookup:
    """Return the question with the asker's namespace on it, where whoever answers has to decide by that."""
    return replace(lookup, within=namespace) if isinstance(lookup, _MARKED) else lookup


def _text(namespace: str, what: str) -> str:
    return f"a policy of namespace `{namespace}` may not read {what}"


def _called(lookup: lookups.ApiCallLookup) -> Target | None:
    """Return what a call is about; None for one that is about no object, or whose path could be read in another way."""
    info = request_info(lookup.method, lookup.url_path)
    if (
        info is None
        or not info.resource
        or info.verb == "watch"
        or lookup.url_path.partition("?")[0].endswith("/")
    ):
        return None
    if info.resource == "namespaces" and not info.group:
        return Target("", "Namespace", False, "", info.name)
    return Target(info.group, "", bool(info.namespace), info.namespace, info.name)
