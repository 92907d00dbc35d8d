"""The two commands at work: sign a file, verify a file.

Between the command line, which only states flags, and the parts of this package. Whatever is signed is verified before it
is written, with the same engine that will judge it in the cluster.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

import orjson

from engine.lang.yaml.write import write_all
from engine.manifests import Trust, compile_manifests
from engine.model import Object, Outcome, Status
from engine.record import record

from .envelope import Proof, annotated, existing_message, message_of, title, with_signature
from .errors import SigningError, UsageError
from .files import read_bytes, read_manifests, trust_config, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence


@record
class SignRequest:
    """What `sign` was told, by the names of its flags."""

    filename: str
    key: str = ""
    output: str = ""
    append: bool = False
    annotation: tuple[str, ...] = ()
    tarball: str = "no"
    annotation_domain: str = "cosign.sigstore.dev"
    rekor_url: str = ""
    no_tlog_upload: bool = False
    identity_token: str = ""
    trusted_root: str = ""
    trust_config: str = ""
    timeout: float = 120.0

    def __repr__(self) -> str:
        return f"<SignRequest {self.filename}>"


@record
class VerifyRequest:
    """What `verify` was told, by the names of its flags."""

    filename: str
    key: tuple[str, ...] = ()
    certificate: str = ""
    certificate_chain: str = ""
    certificate_identity: str = ""
    certificate_identity_regexp: str = ""
    certificate_oidc_issuer: str = ""
    certificate_oidc_issuer_regexp: str = ""
    trusted_root: str = ""
    trust_config: str = ""
    ignore_sct: bool = False
    ignore_tlog: bool = False
    annotation_domain: str = "cosign.sigstore.dev"


def sign_file(flags: SignRequest, err: TextIO) -> None:
    """Sign the file that a request names and write the result; raise SigningError when that cannot be done."""
    _check_flags(flags)
    documents = read_manifests(flags.filename)
    extra = _annotations(flags.annotation)
    message = existing_message(documents, flags.annotation_domain) if flags.append else None
    if message is not None and extra:
        raise UsageError("`--annotation` would change what is already signed; leave out `-A`")
    documents = annotated(documents, extra)
    message = message or message_of(documents, flags.annotation_domain)
    config = trust_config(flags.trusted_root, flags.trust_config, flags.rekor_url)
    proof, attestor = _signature(message, config, flags)
    signed = with_signature(documents, message, proof, flags.annotation_domain, append=flags.append)
    _check_result(signed, attestor, config, flags.annotation_domain)
    target = flags.output or f"{flags.filename}.signed"
    write_text(target, write_all(signed, sort=True))
    _report(signed, target, err)


def verify_file(flags: VerifyRequest) -> list[tuple[Object, Outcome]]:
    """Return every document of the file with its outcome; raise UsageError for flags that do not go together."""
    entries = _wanted(flags)
    documents = read_manifests(flags.filename)
    config = trust_config(flags.trusted_root, flags.trust_config)
    return _judged(documents, entries, config, flags.annotation_domain)


def _judged(
    documents: list[Object], entries: list[dict[str, Any]], config: dict[str, Any], domain: str
) -> list[tuple[Object, Outcome]]:
    """Return documents, each with what a rule that names these signers says of it now."""
    rule = compile_manifests({"attestors": [{"entries": entries}], "annotationDomain": domain})
    trust, now = Trust.from_json(config["trustedRoot"]), datetime.now(UTC)
    return [(one, rule(one, trust, now)) for one in documents]


def _check_flags(flags: SignRequest) -> None:
    if flags.tarball not in {"no", "false"}:
        raise UsageError(
            "signing in the archive form (`--tarball yes`) is not supported",
            help="it is deprecated upstream; manifests signed that way still verify",
        )
    if flags.no_tlog_upload and not flags.key:
        raise UsageError(
            "a keyless signature cannot be verified without its log entry",
            help="leave out `--no-tlog-upload`, or sign with a key (`-k`)",
        )
    if flags.filename == "-" and not flags.output:
        raise UsageError("the name of the result is unknown; give `-o`")
    if flags.timeout <= 0:
        raise UsageError("`--timeout` must be more than 0 seconds")


def _annotations(pairs: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise UsageError(f"`{pair}` is no annotation of the form key=value")
        found[key] = text
    return found


def _signature(
    message: bytes, config: dict[str, Any], flags: SignRequest
) -> tuple[Proof, dict[str, Any]]:
    """Return the signature, with a key or with an identity, and how a policy names who made it."""
    if not flags.key:
        from .keyless import sign_keyless

        return sign_keyless(message, config, flags.identity_token, flags.timeout), {"keyless": {}}
    from .keys import load_signing_key

    key = load_signing_key(flags.key)
    signature, pem, bundle = key.sign(message), key.public_pem, b""
    if flags.rekor_url and not flags.no_tlog_upload:
        bundle = log_signature(flags.rekor_url, message, signature, pem, flags.timeout)
    return Proof(signature, bundle=bundle), {"keys": {"publicKeys": pem}}


def _check_result(
    signed: list[Object], attestor: dict[str, Any], config: dict[str, Any], domain: str
) -> None:
    """Accept documents that verify as they stand, read again from their own text."""
    from engine.lang.yaml import load_all

    documents = [one.value for one in load_all(write_all(signed, sort=True))]
    for document, outcome in _judged(documents, [attestor], config, domain):
        if outcome.status is not Status.PASS:
            raise SigningError(
                f"the signature of {title(document)} does not verify: {outcome.message}",
                help="nothing was written; a private instance needs `--trusted-root` or `--trust-config`",
            )


def _report(signed: list[Object], target: str, err: TextIO) -> None:
    for one in signed:
        if one.get("kind") == "PolicyException" and not one["metadata"].get("namespace"):
            print(
                f"warning: {title(one)} names no namespace, so its signature holds in any", file=err
            )
    if target != "-":
        print(f"signed {', '.join(title(one) for one in signed)}: {target}", file=err)


def _wanted(flags: VerifyRequest) -> list[dict[str, Any]]:
    keys = [{"keys": {"publicKeys": _text(path)}} for path in flags.key]
    entries = [*keys, *_certificate_entries(flags), *_identity_entries(flags)]
    if not entries:
        raise UsageError(
            "nobody is named whose signature is wanted",
            help="give `-k`, `--certificate`, or `--certificate-identity` with `--certificate-oidc-issuer`",
        )
    return entries


def _text(path: str) -> str:
    return read_bytes(path).decode("utf-8", "replace")


def _certificate_entries(flags: VerifyRequest) -> list[dict[str, Any]]:
    named = {"cert": flags.certificate, "certChain": flags.certificate_chain}
    block = {key: _text(path) for key, path in named.items() if path}
    return [{"certificates": block}] if block else []


def _identity_entries(flags: VerifyRequest) -> list[dict[str, Any]]:
    subject = {
        "subject": flags.certificate_identity,
        "subjectRegExp": flags.certificate_identity_regexp,
    }
    issuer = {
        "issuer": flags.certificate_oidc_issuer,
        "issuerRegExp": flags.certificate_oidc_issuer_regexp,
    }
    if not any(subject.values()) and not any(issuer.values()):
        return []
    if not any(subject.values()) or not any(issuer.values()):
        raise UsageError(
            "an identity is wanted by halves",
            help="give both `--certificate-identity` and `--certificate-oidc-issuer` (or `-regexp` forms)",
        )
    logs = {"rekor": {"ignoreTlog": flags.ignore_tlog}, "ctlog": {"ignoreSCT": flags.ignore_sct}}
    return [{"keyless": {**subject, **issuer, **logs}}]


# How `kubectl kpolicy verify` shows its answers: a line per object, or JSON for programs.


def print_answers(outcomes: Sequence[tuple[Object, Outcome]], form: str, out: TextIO) -> int:
    """Print every outcome; return 0 when all objects verified, else 1."""
    if form == "json":
        rows = [
            {"object": title(obj), "verified": one.status is Status.PASS, "message": one.message}
            for obj, one in outcomes
        ]
        print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode(), file=out)
    else:
        for obj, outcome in outcomes:
            word = "verified" if outcome.status is Status.PASS else "not verified"
            print(f"{word}: {title(obj)}: {outcome.message}", file=out)
    return 0 if all(outcome.status is Status.PASS for _, outcome in outcomes) else 1


# Upload of a key signature to a transparency log (Rekor, version 1 of its interface).


_MAX_ANSWER = 1024 * 1024


def log_signature(
    url: str, message: bytes, signature: bytes, public_pem: str, timeout: float
) -> bytes:
    """Return the bundle (JSON) of the log's new entry; raise SigningError when the log gives none."""
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"`{url}` is no address of a transparency log")
    entry = {
        "apiVersion": "0.0.1",
        "kind": "hashedrekord",
        "spec": {
            "data": {"hash": {"algorithm": "sha256", "value": hashlib.sha256(message).hexdigest()}},
            "signature": {
                "content": base64.b64encode(signature).decode(),
                "publicKey": {"content": base64.b64encode(public_pem.encode()).decode()},
            },
        },
    }
    answer = _post(f"{url.rstrip('/')}/api/v1/log/entries", orjson.dumps(entry), timeout)
    return bundle_of(answer)


def bundle_of(answer: Any) -> bytes:
    """Return the bundle of a log's answer, a map of one entry by its id."""
    try:
        (entry,) = answer.values()
        bundle = {
            "SignedEntryTimestamp": entry["verification"]["signedEntryTimestamp"],
            "Payload": {
                "body": entry["body"],
                "integratedTime": entry["integratedTime"],
                "logIndex": entry["logIndex"],
                "logID": entry["logID"],
            },
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SigningError("the transparency log's answer is not a log entry") from error
    return orjson.dumps(bundle)


def _post(url: str, body: bytes, timeout: float) -> Any:
    import http.client
    import urllib.error
    import urllib.request

    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    request = urllib.request.Request(url, body, headers)  # noqa: S310 - the scheme is checked
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310 - as above
            return orjson.loads(response.read(_MAX_ANSWER))
    except urllib.error.HTTPError as error:
        with error:
            raise SigningError(f"the transparency log answered {error.code}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SigningError(f"the transparency log cannot be reached: {error}") from error
