"""Attestors of a policy, each compiled to one question: whether a signature over a payload is theirs.

For manifests and, through the same functions, for container images: what is signed differs, who signs does not. Keys and
certificates are read when the first signature is asked about, and what is wrong with them is then the answer, so that a
policy with one broken key still says which object it could not judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.record import field, lazy, record

from . import keys
from .chain import verify_chain, verify_receipt
from .identity import Identities, IdentityRules, signer_name
from .rekor import read_bundle, verify_entry
from .trust import NO_TRUST, Authority, Trust, authority_of, log_key_from_pem

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cryptography.x509 import Certificate

    from engine.model import Block

_NO_ENTRY = "the signature came without an entry of a transparency log"


@record
class Signed:
    """A payload with one signature and what came beside it (PEM certificates, Rekor bundle JSON; empty where absent).

    `statement` is what stands in the DSSE envelope whose encoding the payload is.
    """

    payload: bytes
    signature: bytes
    certificate: bytes = b""
    chain: bytes = b""
    bundle: bytes = b""
    statement: bytes = b""


def no_key(secret: str) -> str:
    """Raise EvaluationError: there is nobody to ask for the public key in a Secret (`namespace/name`)."""
    raise EvaluationError(f"failed to load public key: secret `{secret}` is not known")


@record
class Circumstances:
    """What the caller knows at the instant of the question.

    `needs_log` says whether a key signature must come with a log entry unless its policy ignores the log (images: yes,
    manifests: no). `key_of` gives the public key in a Secret (`namespace/name`), and raises EvaluationError where it is not to be had.
    """

    now: datetime
    trust: Trust | None = None
    needs_log: bool = False
    key_of: Callable[[str], str] = no_key


@record
class Verdict:
    """A signature that verifies: by whom, and why that is not who was asked for (empty: it is)."""

    signer: str = ""
    mismatch: str = ""


@record
class LogRules:
    """The `rekor` and `ctlog` blocks of an attestor."""

    is_stated: bool = False
    ignores_log: bool = False
    log_pem: str = ""
    ignores_receipt: bool = False
    asks_receipt: bool = False
    receipt_pem: str = ""

    def own_keys(self, trust: Trust) -> Trust:
        """Return `trust` with the log keys that the policy brings itself."""
        return trust.with_own(
            log=log_key_from_pem(self.log_pem) if self.log_pem else None,
            certificate_log=log_key_from_pem(self.receipt_pem) if self.receipt_pem else None,
        )


@record
class KeyAttestor:
    """A public key, given as PEM or by the name of the secret that holds it."""

    pem: str
    secret: str = ""
    unsupported: str = ""
    algorithm: str = "sha256"
    log: LogRules = field(default_factory=LogRules)
    label: str = "keys"

    def verdict(self, signed: Signed, given: Circumstances) -> Verdict:
        """Accept a signature of this key; raise EvaluationError otherwise.

        On manifests a signature without a bundle passes even where `rekor` is configured: published policies rely on it. A bundle
        that is there must hold, unless the log is ignored.
        """
        key = keys.load_public_key(self.key_text(given))
        if not keys.is_signed_by(key, signed.signature, signed.payload, self.algorithm):
            raise EvaluationError("the signature does not verify with the key")
        if signed.bundle and not self.log.ignores_log:
            trust = self.log.own_keys(given.trust or NO_TRUST)
            entry = read_bundle(signed.bundle)
            der = keys.der_of_key(key)
            verify_entry(entry, trust.logs, signed.payload, signed.signature, der, signed.statement)
        elif given.needs_log and not self.log.ignores_log:
            raise EvaluationError(_NO_ENTRY)
        return Verdict()

    def key_text(self, given: Circumstances) -> str:
        """Return the key's PEM; raise EvaluationError when it cannot be had."""
        if self.unsupported:
            raise EvaluationError(self.unsupported)
        return given.key_of(self.secret) if self.secret else self.pem


@record
class CertificateAttestor:
    """A certificate, a chain, or both, as a company's own authority issues them."""

    certificate: str = ""
    certificate_chain: str = ""
    log: LogRules = field(default_factory=LogRules)
    label: str = "certificates"

    @lazy
    def _own(self) -> bytes:
        found = keys.certificates_from_pem(self.certificate)
        if self.certificate and not found:
            raise EvaluationError("no certificate found in `cert`")
        return found[0] if found else b""

    @lazy
    def _authority(self) -> Authority | None:
        found = keys.certificates_from_pem(self.certificate_chain)
        if not self.certificate_chain:
            return None
        return authority_of(found[-1:], found[:-1])

    def verdict(self, signed: Signed, given: Circumstances) -> Verdict:
        """Accept a signature of the certificate, or of one that the chain vouches for; raise EvaluationError otherwise."""
        own, authority = self._own, self._authority
        leaf = keys.load_certificate(own or _first_certificate(signed))
        if own and signed.certificate and _first_certificate(signed) != own:
            raise EvaluationError("the signature came with another certificate")
        trust = self.log.own_keys(given.trust or NO_TRUST)
        instant = _instant(signed, leaf, self.log, trust, given, needs_log=self.log.is_stated)
        if not keys.is_signed_by(leaf.public_key(), signed.signature, signed.payload):
            raise EvaluationError("the signature does not verify with the certificate's key")
        if authority is not None:
            issuer = verify_chain(leaf, (), (authority,), instant, is_public=False)
            if self.log.asks_receipt and not self.log.ignores_receipt:
                verify_receipt(leaf, issuer, trust.certificate_logs)
        elif not leaf.not_valid_before_utc <= instant <= leaf.not_valid_after_utc:
            raise EvaluationError("the certificate was not valid when it signed")
        return Verdict(signer_name(leaf))


@record
class KeylessAttestor:
    """An identity that a trusted authority certified for the minutes of signing."""

    rules: IdentityRules | Identities
    roots: str = ""
    log: LogRules = field(default_factory=LogRules)
    label: str = "keyless"

    @lazy
    def _authority(self) -> Authority | None:
        return authority_of(keys.certificates_from_pem(self.roots)) if self.roots else None

    def verdict(self, signed: Signed, given: Circumstances) -> Verdict:
        """Accept a signature of the identity after every link is checked; raise EvaluationError otherwise."""
        if given.trust is None and not self.roots:
            raise EvaluationError(
                "no trusted root is given, so keyless signatures cannot be verified"
            )
        trust = self.log.own_keys((given.trust or NO_TRUST).with_own(roots=self._authority))
        leaf = keys.load_certificate(_first_certificate(signed))
        instant = _instant(signed, leaf, self.log, trust, given, needs_log=True)
        if not keys.is_signed_by(leaf.public_key(), signed.signature, signed.payload):
            raise EvaluationError("the signature does not verify with the certificate's key")
        extra = keys.certificates_from_pem(signed.chain.decode("utf-8", "replace"))
        issuer = verify_chain(leaf, extra, trust.authorities, instant)
        if not self.log.ignores_receipt:
            verify_receipt(leaf, issuer, trust.certificate_logs)
        return Verdict(signer_name(leaf), self.rules.refusal(leaf))


Attestor = KeyAttestor | CertificateAttestor | KeylessAttestor


def compile_attestor(entry: Block, *, any_hash: bool = False) -> list[Attestor]:
    """Return the attestor of one policy entry; several for several keys in one text, each counted.

    `any_hash` lets `signatureAlgorithm` choose the hash; manifests are signed with SHA-256 whatever it says.
    """
    if isinstance(block := entry.get("keys"), dict):
        return _key_attestors(block, entry, any_hash)
    if isinstance(block := entry.get("certificates"), dict):
        own, chain = str(block.get("cert") or ""), str(block.get("certChain") or "")
        return [CertificateAttestor(own, chain, _log_rules(block))]
    if isinstance(block := entry.get("keyless"), dict):
        return [_keyless_attestor(block)]
    raise EvaluationError("an attestor needs one of `keys`, `certificates`, `keyless`, `attestor`")


def secret_of(keys: Block) -> str:
    """Return the Secret (`namespace/name`) that `keys` are taken from, empty where they stand in the policy."""
    secret = keys.get("secret")
    if isinstance(secret, dict):
        return f"{secret.get('namespace') or ''}/{secret.get('name') or ''}"
    scheme, _, name = str(keys.get("publicKeys") or "").strip().partition("://")
    return name if scheme == "k8s" else ""


def _key_attestors(block: Block, entry: Block, any_hash: bool) -> list[Attestor]:
    text = str(block.get("publicKeys") or "").strip()
    stated = block.get("signatureAlgorithm") or entry.get("signatureAlgorithm") or "sha256"
    algorithm = str(stated) if any_hash else "sha256"
    unsupported = "" if algorithm in keys.HASHES else f"invalid signature algorithm {algorithm}"
    log = _log_rules(block)
    if secret := secret_of(block):
        return [KeyAttestor("", secret, unsupported, algorithm, log)]
    if block.get("kms"):
        return [KeyAttestor("", "", "keys of a KMS are not supported", algorithm, log)]
    blocks = [pem for _, pem in keys.pem_blocks(text)]
    if blocks:
        return [KeyAttestor(pem, "", unsupported, algorithm, log) for pem in blocks]
    scheme, separator, _ = text.partition("://")
    if separator:
        unsupported = f"keys of `{scheme}` are not supported"
    return [KeyAttestor(text, "", unsupported, algorithm, log)]


def _keyless_attestor(block: Block) -> KeylessAttestor:
    extensions = block.get("additionalExtensions") or {}
    rules = IdentityRules(
        subject=str(block.get("subject") or ""),
        subject_regexp=str(block.get("subjectRegExp") or ""),
        issuer=str(block.get("issuer") or ""),
        issuer_regexp=str(block.get("issuerRegExp") or ""),
        extensions={str(key): str(text) for key, text in extensions.items()},
    )
    return KeylessAttestor(rules, str(block.get("roots") or ""), _log_rules(block))


def _log_rules(block: Block) -> LogRules:
    stated = {key: block[key] for key in ("rekor", "ctlog") if isinstance(block.get(key), dict)}
    rekor, ctlog = stated.get("rekor", {}), stated.get("ctlog", {})
    return LogRules(
        is_stated="rekor" in stated,
        ignores_log=rekor.get("ignoreTlog") is True,
        log_pem=str(rekor.get("pubkey") or ""),
        ignores_receipt=ctlog.get("ignoreSCT") is True,
        asks_receipt="ctlog" in stated,
        receipt_pem=str(ctlog.get("pubkey") or ""),
    )


def _first_certificate(signed: Signed) -> bytes:
    found = keys.certificates_from_pem(signed.certificate.decode("utf-8", "replace"))
    if not found:
        raise EvaluationError("the signature came without a certificate")
    return found[0]


def _instant(
    signed: Signed,
    leaf: Certificate,
    log: LogRules,
    trust: Trust,
    given: Circumstances,
    *,
    needs_log: bool,
) -> datetime:
    """Return the instant to judge by: when a trusted log saw the signature, or now where no log is asked for."""
    from cryptography.hazmat.primitives.serialization import Encoding

    if log.ignores_log:
        return given.now
    if signed.bundle:
        der = leaf.public_bytes(Encoding.DER)
        entry = read_bundle(signed.bundle)
        return verify_entry(
            entry, trust.logs, signed.payload, signed.signature, der, signed.statement
        )
    if needs_log:
        raise EvaluationError(_NO_ENTRY)
    return given.now
