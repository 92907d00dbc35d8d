"""The two commands at work: sign a file, verify a file.

Between the command line, which only states flags, and the parts of this package. Whatever is signed is verified before it
is written, with the same engine that will judge it in the cluster.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from engine.lang.yaml.write import write_all
from engine.manifests import Trust, compile_manifests
from engine.model import Status

from .envelope import Proof, annotated, existing_message, message_of, title, with_signature
from .errors import SigningError, UsageError
from .files import read_bytes, read_manifests, trust_config, write_text

if TYPE_CHECKING:
    import argparse

    from engine.model import Object, Outcome

    from .keys import SigningKey


def sign_file(args: argparse.Namespace, err: TextIO) -> None:
    """Sign the file that `args` name and write the result; raise SigningError when that cannot be done."""
    _check_flags(args)
    documents = read_manifests(args.filename)
    extra = _annotations(args.annotation)
    message = existing_message(documents, args.annotation_domain) if args.append else None
    if message is not None and extra:
        raise UsageError("`--annotation` would change what is already signed; leave out `-A`")
    documents = annotated(documents, extra)
    message = message or message_of(documents, args.annotation_domain)
    config = trust_config(args.trusted_root, args.trust_config, args.rekor_url)
    key = _key(args)
    proof = _key_proof(message, key, args) if key else _keyless_proof(message, config, args)
    signed = with_signature(documents, message, proof, args.annotation_domain, append=args.append)
    _check_result(signed, _attestor(key), config, args.annotation_domain)
    target = args.output or f"{args.filename}.signed"
    write_text(target, write_all(signed, sort=True))
    _report(signed, target, err)


def verify_file(args: argparse.Namespace) -> list[tuple[Object, Outcome]]:
    """Return every document of the file with its outcome; raise UsageError for flags that do not go together."""
    entries = _wanted(args)
    documents = read_manifests(args.filename)
    block = {"attestors": [{"entries": entries}], "annotationDomain": args.annotation_domain}
    config = trust_config(args.trusted_root, args.trust_config)
    rule = compile_manifests(block)
    trust, now = Trust.from_json(config["trustedRoot"]), datetime.now(UTC)
    return [(one, rule(one, trust, now)) for one in documents]


def _check_flags(args: argparse.Namespace) -> None:
    if args.tarball not in {"no", "false"}:
        raise UsageError(
            "signing in the archive form (`--tarball yes`) is not supported",
            help="it is deprecated upstream; manifests signed that way still verify",
        )
    if args.no_tlog_upload and not args.key:
        raise UsageError(
            "a keyless signature cannot be verified without its log entry",
            help="leave out `--no-tlog-upload`, or sign with a key (`-k`)",
        )
    if args.filename == "-" and not args.output:
        raise UsageError("the name of the result is unknown; give `-o`")
    if args.timeout <= 0:
        raise UsageError("`--timeout` must be more than 0 seconds")


def _annotations(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise UsageError(f"`{pair}` is no annotation of the form key=value")
        found[key] = text
    return found


def _key(args: argparse.Namespace) -> SigningKey | None:
    if not args.key:
        return None
    from .keys import load_signing_key

    return load_signing_key(args.key)


def _key_proof(message: bytes, key: SigningKey, args: argparse.Namespace) -> Proof:
    signature = key.sign(message)
    if not args.rekor_url or args.no_tlog_upload:
        return Proof(signature)
    from .upload import log_signature

    bundle = log_signature(args.rekor_url, message, signature, key.public_pem, args.timeout)
    return Proof(signature, bundle=bundle)


def _keyless_proof(message: bytes, config: dict[str, Any], args: argparse.Namespace) -> Proof:
    from .keyless import sign_keyless

    return sign_keyless(message, config, args.identity_token, args.timeout)


def _attestor(key: SigningKey | None) -> dict[str, Any]:
    return {"keyless": {}} if key is None else {"keys": {"publicKeys": key.public_pem}}


def _check_result(
    signed: list[Object], attestor: dict[str, Any], config: dict[str, Any], domain: str
) -> None:
    """Accept documents that verify as they stand, read again from their own text."""
    from engine.lang.yaml import load_all

    block = {"attestors": [{"entries": [attestor]}], "annotationDomain": domain}
    rule = compile_manifests(block)
    trust, now = Trust.from_json(config["trustedRoot"]), datetime.now(UTC)
    for document in load_all(write_all(signed, sort=True)):
        outcome = rule(document.value, trust, now)
        if outcome.status is not Status.PASS:
            raise SigningError(
                f"the signature of {title(document.value)} does not verify: {outcome.message}",
                help="nothing was written; a private instance needs `--trusted-root` or `--trust-config`",
            )


def _report(signed: list[Object], target: str, err: TextIO) -> None:
    for one in signed:
        if one.get("kind") == "PolicyException" and not one["metadata"].get("namespace"):
            print(
                f"warning: {title(one)} names no namespace, so its signature holds in any",
                file=err,
            )
    if target != "-":
        print(f"signed {', '.join(title(one) for one in signed)}: {target}", file=err)


def _wanted(args: argparse.Namespace) -> list[dict[str, Any]]:
    entries = [*map(_key_entry, args.key), *_certificate_entries(args), *_identity_entries(args)]
    if not entries:
        raise UsageError(
            "nobody is named whose signature is wanted",
            help="give `-k`, `--certificate`, or `--certificate-identity` with `--certificate-oidc-issuer`",
        )
    return entries


def _key_entry(path: str) -> dict[str, Any]:
    text = read_bytes(path).decode("utf-8", "replace")
    return {"keys": {"publicKeys": text}}


def _certificate_entries(args: argparse.Namespace) -> list[dict[str, Any]]:
    named = {"cert": args.certificate, "certChain": args.certificate_chain}
    block = {
        key: read_bytes(path).decode("utf-8", "replace") for key, path in named.items() if path
    }
    return [{"certificates": block}] if block else []


def _identity_entries(args: argparse.Namespace) -> list[dict[str, Any]]:
    subject = {
        "subject": args.certificate_identity,
        "subjectRegExp": args.certificate_identity_regexp,
    }
    issuer = {
        "issuer": args.certificate_oidc_issuer,
        "issuerRegExp": args.certificate_oidc_issuer_regexp,
    }
    if not any(subject.values()) and not any(issuer.values()):
        return []
    if not any(subject.values()) or not any(issuer.values()):
        raise UsageError(
            "an identity is wanted by halves",
            help="give both `--certificate-identity` and `--certificate-oidc-issuer` (or `-regexp` forms)",
        )
    logs = {
        "rekor": {"ignoreTlog": args.ignore_tlog},
        "ctlog": {"ignoreSCT": args.ignore_sct},
    }
    return [{"keyless": {**subject, **issuer, **logs}}]
