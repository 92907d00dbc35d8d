"""Keyless signing: an identity token in, a signature with certificate and log entry out.

The only place that knows the sigstore library, which is an optional extra and loads in a quarter of a second. The library's
bundle is turned into the parts that the annotations carry; only logs of version 1 give what they need, a signed entry
timestamp.
"""

from __future__ import annotations

import base64
import os
import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import orjson

from .envelope import Proof
from .errors import SigningError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN_VARIABLE = "SIGSTORE_ID_TOKEN"  # noqa: S105 - the variable's name


def sign_keyless(message: bytes, config: dict[str, Any], token: str, timeout: float) -> Proof:
    """Sign with the identity of `token`, else of the environment, else of the user at the browser.

    `config` is a ClientTrustConfig document. Raise SigningError when any service refuses or `timeout` seconds pass.
    """
    return _within(timeout, lambda: _sign(message, config, token))


def _sign(message: bytes, config: dict[str, Any], token: str) -> Proof:
    try:
        from sigstore.models import ClientTrustConfig
        from sigstore.sign import SigningContext
    except ImportError as error:
        raise SigningError(
            "keyless signing needs the package sigstore",
            help="install `kubectl-kpolicy[sigstore]`, or sign with a key (`-k`)",
        ) from error
    try:
        trust = ClientTrustConfig.from_json(orjson.dumps(config).decode())
        trust.force_tlog_version = 1
        context = SigningContext.from_trust_config(trust)
        identity = _identity(token, trust)
        with context.signer(identity) as signer:
            bundle = signer.sign_artifact(message)
        return _proof(orjson.loads(bundle.to_json()))
    except SigningError:
        raise
    except Exception as error:  # the library and its services fail in many kinds
        raise SigningError(
            f"keyless signing failed: {type(error).__name__}: {str(error)[:300]}"
        ) from error


def _identity(token: str, trust: Any) -> Any:
    from sigstore.oidc import IdentityToken, Issuer, detect_credential

    found = token or os.environ.get(TOKEN_VARIABLE, "") or detect_credential()
    if found:
        return IdentityToken(found)
    if not sys.stdin.isatty():
        raise UsageError(
            "no identity to sign with",
            help=f"give `--identity-token`, set {TOKEN_VARIABLE}, allow the CI job to request "
            "tokens (`id-token: write`), or sign with a key (`-k`)",
        )
    return Issuer(trust.signing_config.get_oidc_url()).identity_token()


def _proof(bundle: dict[str, Any]) -> Proof:
    try:
        material = bundle["verificationMaterial"]
        entry = material["tlogEntries"][0]
        logged = {
            "SignedEntryTimestamp": entry["inclusionPromise"]["signedEntryTimestamp"],
            "Payload": {
                "body": entry["canonicalizedBody"],
                "integratedTime": int(entry["integratedTime"]),
                "logIndex": int(entry["logIndex"]),
                "logID": base64.b64decode(entry["logId"]["keyId"]).hex(),
            },
        }
        return Proof(
            signature=base64.b64decode(bundle["messageSignature"]["signature"]),
            certificate=_pem(material["certificate"]["rawBytes"]),
            bundle=orjson.dumps(logged),
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise SigningError(
            "the transparency log gave no signed entry timestamp",
            help="manifests need a log with version 1 of Rekor's interface",
        ) from error


def _pem(der: str) -> bytes:
    lines = [der[start : start + 64] for start in range(0, len(der), 64)]
    framed = ["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]
    return "\n".join(framed).encode()


def _within(timeout: float, work: Callable[[], Proof]) -> Proof:
    """Run `work`, but wait for it no longer than `timeout`: the library's requests have no end of their own."""
    made: Future[Proof] = Future()

    def runner() -> None:
        try:
            made.set_result(work())
        except Exception as error:
            made.set_exception(error)

    threading.Thread(target=runner, daemon=True).start()
    try:
        return made.result(timeout)
    except TimeoutError as error:
        raise SigningError(f"keyless signing did not finish within {timeout:g} seconds") from error
