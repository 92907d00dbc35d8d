"""Attestors of an ImageValidatingPolicy, each compiled to one question: whether what is kept beside an image is his.

What a policy writes as an expression is evaluated for each object; the rest is read once. What is wrong with an attestor is
found when he is asked, and is then the reason why he vouches for nothing, as upstream has it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError, PolicyError
from engine.evaluate.lookups import TrustLookup
from engine.images import signers
from engine.images.claims import payload_of
from engine.images.notation import TrustStore
from engine.lang import json
from engine.manifests import Circumstances, Trust, attestors
from engine.manifests.identity import Identities, IdentityRules
from engine.manifests.keys import HASHES
from engine.record import record

from .expressions import compile_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import datetime

    from engine.images import ImageData
    from engine.lang.cel import Program
    from engine.model import Block, Json

    from .bindings import Bindings

    Text = Callable[[Bindings], str]

_MOST_TRUSTED_ROOT: Final = 1024 * 1024
_COSIGN_PARTS: Final = ("key", "keyless", "certificate")


@record
class Attestation:
    """A statement or artifact that a policy asks about: its name, its type, and which of the two it is."""

    name: str
    type: str
    is_referrer: bool


@record
class Cosign:
    """A cosign attestor as it is for one object; `trust` stands in for that of the engine where there is one."""

    attestor: attestors.Attestor
    annotations: Mapping[str, str]
    trust: Trust | None

    def signs(self, data: ImageData, now: datetime, trust: Trust | None) -> bool:
        """Tell whether a signature of the image is his."""
        given = self._given(now, trust)
        return "" in signers.signature_refusals(self.attestor, data, self.annotations, given)

    def vouched(
        self, data: ImageData, wanted: Attestation, now: datetime, trust: Trust | None
    ) -> list[Json]:
        """Return the predicates of statements that he signed; raise EvaluationError for what no cosign signs."""
        if wanted.is_referrer:
            raise EvaluationError("cosign verifier only supports in-toto attestations")
        given = self._given(now, trust)
        return [
            envelope.predicate
            for layer, envelope in signers.statements(data, wanted.type)
            if not signers.statement_refusal(self.attestor, layer, envelope, given)
        ]

    def _given(self, now: datetime, trust: Trust | None) -> Circumstances:
        return Circumstances(now, self.trust or trust, needs_log=True)


@record
class Notary:
    """A notary attestor as it is for one object."""

    store: TrustStore

    def signs(self, data: ImageData, now: datetime, trust: Trust | None) -> bool:
        """Tell whether a signature of the image is by somebody in the store."""
        del trust
        return not signers.notary_refusal(self.store, data.notations, data.digest, now)

    def vouched(
        self, data: ImageData, wanted: Attestation, now: datetime, trust: Trust | None
    ) -> list[Json]:
        """Return what the artifacts hold that were signed; raise EvaluationError for what no notary signs."""
        del trust
        if not wanted.is_referrer:
            raise EvaluationError("notary verifier only supports oci 1.1 referrers as attestations")
        return [
            payload_of(one) for one in signers.vouched_artifacts(self.store, data, wanted.type, now)
        ]


@record
class ImageAttestor:
    """One attestor of a policy.

    `read` makes of it what it is for one object. `repository`, `tag_prefix` and `secrets` say where his signatures are kept
    and how they are read. `is_constant` says that he is the same for every object; `block` is what the policy says of him.
    """

    name: str
    read: Callable[[Bindings], Cosign | Notary]
    block: Block
    is_constant: bool
    repository: str = ""
    tag_prefix: str = ""
    secrets: tuple[str, ...] = ()


def compile_attestors(blocks: Any, names: Collection[str]) -> dict[str, ImageAttestor]:
    """Compile `spec.attestors` by name; raises PolicyError for an attestor that cannot be one."""
    found: dict[str, ImageAttestor] = {}
    for index, block in enumerate(blocks or ()):
        place = f"attestors[{index}]"
        kinds = [kind for kind in ("cosign", "notary") if isinstance(block.get(kind), dict)]
        if len(kinds) != 1:
            raise PolicyError(f"`{place}` must have exactly one of cosign, notary")
        make = _cosign if kinds[0] == "cosign" else _notary
        found[str(block.get("name", ""))] = make(block, _Texts(names), place)
    return found


def compile_attestations(blocks: Any) -> dict[str, Attestation]:
    """Compile `spec.attestations` by name; raises PolicyError for one without a type."""
    found = {}
    for index, block in enumerate(blocks or ()):
        named = [kind for kind in ("intoto", "referrer") if isinstance(block.get(kind), dict)]
        if len(named) != 1 or not block[named[0]].get("type"):
            raise PolicyError(f"`attestations[{index}]` must have a type of intoto or of referrer")
        name = str(block.get("name", ""))
        found[name] = Attestation(name, str(block[named[0]]["type"]), named[0] == "referrer")
    return found


class _Texts:
    """Compiles texts that stand as `value` or as `expression`, and notes whether all of them are values."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self.are_constant = True

    def of(self, block: Any, place: str, key: str = "value") -> Text:
        """Return what gives the text for an object; raises PolicyError for an expression that cannot work."""
        block = block if isinstance(block, dict) else {}
        if not block.get("expression"):
            value = str(block.get(key) or "")
            return lambda _: value
        self.are_constant = False
        program = compile_expression(block["expression"], self._names, place=f"{place}.expression")
        return lambda bindings: _text(program, bindings)


def _text(program: Program, bindings: Bindings) -> str:
    value = bindings.value_of(program)
    if not isinstance(value, str):
        raise EvaluationError(f"expression '{program.source}' does not give a text")
    return value


def _notary(block: Block, texts: _Texts, place: str) -> ImageAttestor:
    certificates = texts.of(block["notary"].get("certs"), f"{place}.notary.certs")

    def read(bindings: Bindings) -> Notary:
        return Notary(TrustStore.from_pem(certificates(bindings)))

    return ImageAttestor(str(block.get("name", "")), read, block, texts.are_constant)


def _cosign(block: Block, texts: _Texts, place: str) -> ImageAttestor:
    cosign, place = block["cosign"], f"{place}.cosign"
    stated = [part for part in _COSIGN_PARTS if isinstance(cosign.get(part), dict)]
    if len(stated) != 1:
        raise PolicyError(f"`{place}` must have exactly one of {', '.join(_COSIGN_PARTS)}")
    make = {"key": _key, "keyless": _keyless, "certificate": _certificate}[stated[0]]
    attestor = make(cosign, texts, f"{place}.{stated[0]}")
    root = texts.of(cosign.get("trustedRoot"), f"{place}.trustedRoot")
    notes = {str(key): str(text) for key, text in (cosign.get("annotations") or {}).items()}
    source = cosign.get("source") or {}

    def read(bindings: Bindings) -> Cosign:
        _check_log(cosign)
        return Cosign(attestor(bindings), notes, _trust(root(bindings), cosign, bindings))

    return ImageAttestor(
        str(block.get("name", "")),
        read,
        block,
        texts.are_constant,
        repository=str(source.get("repository") or ""),
        tag_prefix=str(source.get("tagPrefix") or ""),
        secrets=tuple(str(one.get("name")) for one in source.get("PullSecrets") or ()),
    )


def _key(cosign: Block, texts: _Texts, place: str) -> Callable[[Bindings], attestors.Attestor]:
    key, log = cosign["key"], _log_rules(cosign)
    algorithm = str(key.get("hashAlgorithm") or "sha256")
    pem = texts.of(key, place, "data")
    unsupported = "" if algorithm in HASHES else f"invalid signature algorithm {algorithm}"
    if key.get("kms"):
        unsupported = "keys of a KMS are not supported"
    return lambda bindings: attestors.KeyAttestor(pem(bindings), "", unsupported, algorithm, log)


def _keyless(cosign: Block, texts: _Texts, place: str) -> Callable[[Bindings], attestors.Attestor]:
    del texts
    keyless, log = cosign["keyless"], _log_rules(cosign)
    blocks = keyless.get("identities") or ()
    if not blocks:
        raise PolicyError(f"`{place}.identities` must name at least one identity")
    attestor = attestors.KeylessAttestor(
        Identities(tuple(map(_identity, blocks))), str(keyless.get("roots") or ""), log
    )

    return lambda _: attestor


def _identity(block: Block) -> IdentityRules:
    """Read an identity: an expression wins over a text, and a text means itself, wildcards or not."""
    return IdentityRules(
        subject_regexp=_exactly(block, "subject"), issuer_regexp=_exactly(block, "issuer")
    )


def _exactly(block: Block, key: str) -> str:
    if block.get(f"{key}RegExp"):
        return str(block[f"{key}RegExp"])
    return rf"\A{re.escape(str(block[key]))}\z" if block.get(key) else ""


def _certificate(
    cosign: Block, texts: _Texts, place: str
) -> Callable[[Bindings], attestors.Attestor]:
    block, log = cosign["certificate"], _log_rules(cosign)
    own = texts.of(block.get("cert"), f"{place}.cert")
    chain = texts.of(block.get("certChain"), f"{place}.certChain")

    return lambda bindings: attestors.CertificateAttestor(own(bindings), chain(bindings), log)


def _log_rules(cosign: Block) -> attestors.LogRules:
    log = cosign.get("ctlog") or {}
    return attestors.LogRules(
        is_stated=True,
        ignores_log=log.get("insecureIgnoreTlog") is True,
        log_pem=str(log.get("rekorPubKey") or ""),
        ignores_receipt=log.get("insecureIgnoreSCT") is True,
        asks_receipt=bool(log),
        receipt_pem=str(log.get("ctLogPubKey") or ""),
    )


def _check_log(cosign: Block) -> None:
    """Accept a log that is ignored or has an address, as upstream asks for one (row IP-31)."""
    log = cosign.get("ctlog")
    if log and log.get("insecureIgnoreTlog") is not True and not log.get("url"):
        raise EvaluationError("rekor URL must be provided")


def _trust(text: str, cosign: Block, bindings: Bindings) -> Trust | None:
    """Return the trust that a policy brings itself: a trusted root, else what its TUF repository has."""
    if text:
        if len(text) > _MOST_TRUSTED_ROOT:
            raise EvaluationError("a trusted root of more than 1 MiB")
        return Trust.from_json(json.load(text))
    tuf = cosign.get("tuf")
    return _trust_of_mirror(tuf, bindings) if tuf else None


def _trust_of_mirror(tuf: Block, bindings: Bindings) -> Trust:
    root = tuf.get("root") or {}
    answer = bindings.inputs.ask(
        TrustLookup(str(tuf.get("mirror") or ""), str(root.get("data") or ""))
    )
    if not isinstance(answer.value, dict):
        raise EvaluationError(f"the trusted root cannot be had: {answer.error or 'nobody to ask'}")
    return Trust.from_json(answer.value)
