"""The `validate.manifests` rule: an object passes when it is what enough trusted people signed.

For the evaluation of policies and for `kubectl kpolicy verify`. Puts the parts together: annotations, comparison,
attestors, counting, and Kyverno's texts. No API server is asked here, so that a policy's `dryRun` excuses no difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError, PolicyError
from engine.fields import part
from engine.model import Block, Object, Outcome, Status
from engine.record import lazy, record

from . import documents
from .annotations import DEFAULT_DOMAIN, Envelope, read_envelope
from .attestors import Attestor, Circumstances, Signed, Verdict, no_key
from .compare import Difference, differences, shown
from .counting import Answer, AttestorSet, Entry, ask_set, compile_sets
from .ignore import IgnoredFields, compile_ignored

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from .trust import Trust

_NOT_FOUND = "YAML manifest not found for this resource"


@record
class ManifestRule:
    """A compiled manifests rule; call it with an object to get the outcome."""

    sets: tuple[AttestorSet, ...]
    ignored: IgnoredFields
    domain: str = DEFAULT_DOMAIN

    def __call__(
        self,
        obj: Object,
        trust: Trust | None,
        now: datetime,
        dry_run: bool = False,  # noqa: FBT001, FBT002, RUF100 - the fixed form of the call
        key_of: Callable[[str], str] = no_key,
    ) -> Outcome:
        """Return the outcome for `obj`, the object of the request as received; `dry_run` is that of the request itself.

        `key_of` is as in `Circumstances`.
        """
        if dry_run:
            return Outcome(Status.PASS, "allowed because of DryRun request")
        evidence = _Evidence(self, obj, Circumstances(now, trust, key_of=key_of))
        reasons: list[str] = []
        for wanted in self.sets:
            answer = ask_set(wanted, evidence.ask, "manifest")
            if answer.errors:
                combined = "; ".join(answer.errors)
                return Outcome(
                    Status.ERROR, f"error occurred during manifest verification: {combined}"
                )
            if not answer.agreed:
                return Outcome(Status.FAIL, answer.reason)
            reasons.append(answer.reason)
        return Outcome(Status.PASS, f"verified manifest signatures; {','.join(reasons)}")

    def changes(self, obj: Object, signed: Object) -> list[Difference]:
        """Return how `obj` differs from the signed document, without what may differ (sections 3.2 and 3.3)."""
        before = documents.without_signatures(signed, self.domain)
        after = documents.without_signatures(obj, self.domain)
        found = differences(before, after)
        if not found:
            return found
        kept = self.ignored.keep(found, before, after)
        if documents.is_generated(obj, signed):
            kept = [one for one in kept if one.path != ("metadata", "name")]
        return kept


def compile_manifests(rule_block: Block) -> ManifestRule:
    """Compile the `manifests` block of a rule (row A-77); raise PolicyError when no object could ever satisfy it."""
    sets = compile_sets(rule_block.get("attestors") or [])
    if not sets:
        raise PolicyError("`manifests.attestors` must not be empty")
    return ManifestRule(
        sets=sets,
        ignored=compile_ignored(rule_block.get("ignoreFields")),
        domain=str(rule_block.get("annotationDomain") or DEFAULT_DOMAIN),
    )


@record
class _Evidence:
    """Everything about one object that the entries share, worked out once."""

    rule: ManifestRule
    obj: Object
    given: Circumstances

    def ask(self, entry: Entry) -> Answer:
        """Answer one entry: annotations, then signatures, then content (sections 4.2 and 4.3)."""
        attestor = entry.attestor
        # INVARIANT: nested sets and broken entries are answered by the counting.
        assert attestor is not None
        assert not isinstance(attestor, AttestorSet)
        mismatch = _annotation_mismatch(self.obj, entry.annotations)
        if mismatch:
            return Answer(False, errors=(mismatch,))
        try:
            envelope, content = self._compared
        except EvaluationError as error:
            return Answer(False, errors=(f"{entry.path}: {_NOT_FOUND}: {error.message}",))
        if envelope is None:
            return Answer(False, f"{entry.path}: {content}")
        if not envelope.signatures:
            return Answer(False, f"{entry.path}: failed to verify signature: signature not found")
        return self._judge(entry.path, attestor, envelope, content)

    def _judge(self, path: str, attestor: Attestor, envelope: Envelope, content: str) -> Answer:
        verdict, trials = _best_verdict(attestor, envelope, self.given)
        if verdict is None:
            listed = ", ".join(f'"{one}"' for one in trials)
            failed = f"verification failed for {len(trials)} signature. all trials: [{listed}]"
            return Answer(False, errors=(f"{path}: failed to verify signature: {failed}",))
        if content:
            return Answer(False, f"{path}: failed to verify signature. {content}")
        if verdict.mismatch:
            reason = f"no signer matches with this resource. signed by {verdict.signer}"
            return Answer(False, f"{path}: {reason}")
        return Answer(True, f"singed by a valid signer: {verdict.signer}")

    @lazy
    def _compared(self) -> tuple[Envelope | None, str]:
        """The envelope and how the content differs; no envelope: the text says what is missing."""
        envelope = read_envelope(self.obj, self.rule.domain)
        if envelope is None:
            return None, f"{_NOT_FOUND}: message not found"
        written = documents.signed_documents(envelope.message)
        signed = documents.reference_for(self.obj, written)
        if signed is None:
            missing = "no manifest for this object" if documents.has_kind(self.obj, written) else ""
            return None, f"{_NOT_FOUND}: {missing or 'message not found'}"
        found = self.rule.changes(self.obj, signed)
        return envelope, f"diff found; {shown(found)}" if found else ""


def _best_verdict(
    attestor: Attestor, envelope: Envelope, given: Circumstances
) -> tuple[Verdict | None, list[str]]:
    """Try every signature; the first that is wholly right wins, then the first of another signer."""
    other: Verdict | None = None
    trials: list[str] = []
    total = len(envelope.signatures)
    for number, one in enumerate(envelope.signatures, 1):
        signed = Signed(envelope.message, one.signature, one.certificate, bundle=one.bundle)
        try:
            if one.problem:
                raise EvaluationError(one.problem)
            verdict = attestor.verdict(signed, given)
        except EvaluationError as error:
            trials.append(f"[signature {number}/{total}] {error.message}")
            continue
        if not verdict.mismatch:
            return verdict, trials
        other = other or verdict
    return other, trials


def _annotation_mismatch(obj: Object, wanted: Mapping[str, str]) -> str:
    actual = part(obj, "metadata", "annotations")
    for key, text in wanted.items():
        if actual.get(key) != text:
            return (
                f"annotations mismatch: {actual.get(key, '')} does not match "
                f"expected value {text} for key {key}"
            )
    return ""
