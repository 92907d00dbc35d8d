"""`kubectl kpolicy sign`: sign manifests with a key or an identity; flags as in upstream's own signing plugin."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .flags import request_of

if TYPE_CHECKING:
    import argparse


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its flags."""
    parser = sub.add_parser(
        "sign",
        description="Sign the manifests of a file, with a key or with your identity.",
        epilog="example: kubectl kpolicy sign -f exception.yaml -k cosign.key -o signed/exception.yaml",
    )
    add = parser.add_argument
    add("-f", "--filename", required=True, metavar="FILE", help="manifests; - reads standard input")
    add("-k", "--key", default="", metavar="FILE",
        help="private key; without it the signature is keyless")  # fmt: skip
    add("-o", "--output", default="", metavar="FILE",
        help="where to write the result (default: FILE.signed; - is standard output)")  # fmt: skip
    add("-A", "--append-signature", dest="append", action="store_true",
        help="keep existing signatures")  # fmt: skip
    add("-a", "--annotation", action="append", default=[], metavar="KEY=VALUE",
        help="annotation to add before signing")  # fmt: skip
    add("--tarball", default="no", metavar="no", help="only `no`, the current form, is written")
    add("--annotation-domain", default="cosign.sigstore.dev", metavar="DOMAIN",
        help="prefix of the signature annotations")  # fmt: skip
    add("--rekor-url", default="", metavar="URL",
        help="transparency log; with a key, log the signature there")  # fmt: skip
    add(
        "--no-tlog-upload",
        action="store_true",
        help="with a key, do not upload to the transparency log",
    )
    add("--identity-token", default="", metavar="TOKEN",
        help="identity for keyless signing (default: SIGSTORE_ID_TOKEN, CI job, browser)")  # fmt: skip
    add("--trusted-root", default="", metavar="FILE", help="keys of a private Sigstore instance")
    add("--trust-config", default="", metavar="FILE",
        help="keys and addresses of a private Sigstore instance")  # fmt: skip
    add("--timeout", type=float, default=120.0, metavar="SECONDS",
        help="time out requests to other services after this long")  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Sign the file; return 0, 1 when it could not be signed, 2 for wrong use."""
    from engine.errors import DocumentError, EngineError
    from kubectl_kpolicy.signing.errors import UsageError
    from kubectl_kpolicy.signing.session import SignRequest, sign_file

    try:
        sign_file(request_of(SignRequest, args), sys.stderr)
    except EngineError as error:
        where = f"{error.at}: " if str(error.at) else ""
        print(f"error: {where}{error.message}", file=sys.stderr)
        if error.help:
            print(f"  help: {error.help}", file=sys.stderr)
        return 2 if isinstance(error, UsageError | DocumentError) else 1
    return 0
