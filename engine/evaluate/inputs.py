"""Everything an evaluation may know besides policies and the object: instant, chance, answers, values given by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.record import record

from .lookups import Answer, Lookup, LookupNeeded
from .reach import marked, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
    exceptions, by their identity, that are not to count.
    """

    now: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    seed: bytes | Callable[[], bytes] = b""
    variables: Mapping[str, Json] = _NONE
    rule_values: Mapping[tuple[str, str], Mapping[str, Json]] = _NONE
    foreach_values: Mapping[tuple[str, str], Mapping[str, Sequence[Json]]] = _NONE
    answers: Mapping[Lookup, Answer] = _NONE
    trust: Trust | None = None
    within: str = ""
    resolve_values: bool = False
    disregarded: frozenset[str] = frozenset()

    def ask(self, lookup: Lookup) -> Answer:
        """Return the answer to `lookup`; raises LookupNeeded while there is none."""
        return self.ask_all((lookup,))[0]

    def ask_all(self, lookups: Sequence[Lookup]) -> tuple[Answer, ...]:
        """Return the answer to each of `lookups`; raises LookupNeeded for all of them that have none yet."""
        answers, missing = [], []
        for lookup in lookups:
            asked = marked(lookup, self.within) if self.within else lookup
            if self.within and (reason := refusal(lookup, self.within)):
                answers.append(Answer.failed(reason))
            elif (answer := self.answers.get(asked)) is not None:
                answers.append(answer)
            else:
                missing.append(asked)
        if missing:
            raise LookupNeeded(*missing)
        return tuple(answers)


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
