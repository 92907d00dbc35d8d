"""Who a signing certificate speaks for, and whether that is who the policy asks for.

For keyless attestors of manifests and images. Texts of policies are wildcards or regular expressions;
nothing of the certificate is ever taken as a pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang import regex, wildcard
from engine.record import field, record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.x509 import Certificate, SubjectAlternativeName

_FULCIO = "1.3.6.1.4.1.57264.1."
_RAW = frozenset(_FULCIO + str(number) for number in range(1, 7))
_OTHER_NAME = _FULCIO + "7"
_UTF8_STRING = 0x0C

EXTENSION_NAMES = {
    "oidcIssuer": _FULCIO + "1",
    "githubWorkflowTrigger": _FULCIO + "2",
    "githubWorkflowSha": _FULCIO + "3",
    "githubWorkflowName": _FULCIO + "4",
    "githubWorkflowRepository": _FULCIO + "5",
    "githubWorkflowRef": _FULCIO + "6",
}
"""Names of certificate extensions that policies may use in place of their numbers."""


@record
class IdentityRules:
    """What a policy asks of the signer: subject (either form suffices), issuer (every form given), extensions."""

    subject: str = ""
    subject_regexp: str = ""
    issuer: str = ""
    issuer_regexp: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)

    def refusal(self, certificate: Certificate) -> str:
        """Return why the certificate's identity is not the wanted one, empty when it is."""
        return (
            self._subject_refusal(subjects_of(certificate))
            or self._issuer_refusal(issuer_of(certificate))
            or self._extension_refusal(certificate)
        )

    def _subject_refusal(self, subjects: list[str]) -> str:
        if not self.subject and not self.subject_regexp:
            return ""
        for subject in subjects:
            if self.subject and wildcard.match(self.subject, subject):
                return ""
            if self.subject_regexp and _found(self.subject_regexp, subject):
                return ""
        wanted = self.subject or self.subject_regexp
        return f"subject mismatch: expected {wanted}, received {', '.join(subjects) or 'none'}"

    def _issuer_refusal(self, issuer: str) -> str:
        is_wanted = (not self.issuer or wildcard.match(self.issuer, issuer)) and (
            not self.issuer_regexp or _found(self.issuer_regexp, issuer)
        )
        if is_wanted:
            return ""
        wanted = self.issuer or self.issuer_regexp
        return f"issuer mismatch: expected {wanted}, received {issuer or 'none'}"

    def _extension_refusal(self, certificate: Certificate) -> str:
        for name, wanted in self.extensions.items():
            received = extension_text(certificate, EXTENSION_NAMES.get(name, name))
            if received is None or not wildcard.match(wanted, received):
                shown = "none" if received is None else received
                return f"extension mismatch: expected {wanted} for key {name}, received {shown}"
        return ""


@record
class Identities:
    """Rules of which any one is enough."""

    rules: tuple[IdentityRules, ...]

    def refusal(self, certificate: Certificate) -> str:
        """Return why the certificate's identity is none of those wanted, empty when it is one."""
        refused = [one.refusal(certificate) for one in self.rules]
        return "" if "" in refused else "; ".join(refused) or "no identity is wanted"


def subjects_of(certificate: Certificate) -> list[str]:
    """Return everything a signer is called: e-mail and URI names, then Fulcio's own kind of name."""
    from cryptography import x509

    names = _names(certificate)
    if names is None:
        return []
    others = (
        _utf8(one.value)
        for one in names.get_values_for_type(x509.OtherName)
        if one.type_id.dotted_string == _OTHER_NAME
    )
    return [
        *names.get_values_for_type(x509.RFC822Name),
        *names.get_values_for_type(x509.UniformResourceIdentifier),
        *(name for name in others if name),
    ]


def issuer_of(certificate: Certificate) -> str:
    """Return the identity provider that vouched for the signer, empty when the certificate names none."""
    newer = extension_text(certificate, _FULCIO + "8")
    if newer is not None:
        return newer
    return extension_text(certificate, _FULCIO + "1") or ""


def extension_text(certificate: Certificate, oid: str) -> str | None:
    """Return the text of an extension: raw bytes for Fulcio's first six, a DER UTF8String otherwise."""
    from cryptography import x509

    try:
        found = certificate.extensions.get_extension_for_oid(x509.ObjectIdentifier(oid)).value
    except Exception:  # absent, no number at all, or an unreadable extension elsewhere
        return None
    if not isinstance(found, x509.UnrecognizedExtension):
        return None
    return found.value.decode("utf-8", "replace") if oid in _RAW else _utf8(found.value)


def signer_name(certificate: Certificate) -> str:
    """Return what messages call the signer: e-mail name, e-mail or common name of the subject, else the last name."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    names = _names(certificate)
    emails = names.get_values_for_type(x509.RFC822Name) if names else []
    if emails:
        return str(emails[0])
    for oid in (NameOID.EMAIL_ADDRESS, NameOID.COMMON_NAME):
        found = certificate.subject.get_attributes_for_oid(oid)
        if found:
            return str(found[0].value)
    return (subjects_of(certificate) or [""])[-1]


def _names(certificate: Certificate) -> SubjectAlternativeName | None:
    from cryptography import x509

    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # absent or unreadable
        return None


def _utf8(der: bytes) -> str | None:
    """Decode a DER UTF8String; None when it is anything else."""
    if len(der) < 2 or der[0] != _UTF8_STRING:
        return None
    length, start = der[1], 2
    if length & 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(der[2 : 2 + size], "big"), 2 + size
    if len(der) != start + length:
        return None
    try:
        return der[start:].decode("utf-8")
    except UnicodeDecodeError:
        return None


def _found(pattern: str, text: str) -> bool:
    """Search anywhere in the text, as Go does."""
    return regex.compile(pattern).search(text)
