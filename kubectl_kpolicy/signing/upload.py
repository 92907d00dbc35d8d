"""Upload of a key signature to a transparency log (Rekor, version 1 of its interface).

For `kubectl kpolicy sign -k … --rekor-url …`. One request written by hand, because the sigstore library logs certificates
only.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import urllib.error
import urllib.request
from typing import Any

import orjson

from .errors import SigningError, UsageError

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
