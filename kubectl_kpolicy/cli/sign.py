"""`kubectl kpolicy sign`: sign manifests with a key or an identity; flags as in upstream's own signing plugin."""

from __future__ import annotations

import sys

from .flags import Arguments, Flags, request_of


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.parser.description = "Sign the manifests of a file, with a key or with your identity."
    flags.example("kubectl kpolicy sign -f exception.yaml -k cosign.key -o signed/exception.yaml")
    flags.text("-f --filename", "FILE", "manifests; - reads standard input", required=True)
    flags.text("-k --key", "FILE", "private key; without it the signature is keyless")
    flags.text("-o --output", "FILE", "where to write the result (default: FILE.signed; - is standard output)")  # fmt: skip
    flags.switch("-A --append-signature", "keep existing signatures", dest="append")
    flags.many("-a --annotation", "KEY=VALUE", "annotation to add before signing")
    flags.text("--tarball", "no", "only `no`, the current form, is written", default="no")
    flags.text("--annotation-domain", "DOMAIN", "prefix of the signature annotations", default="cosign.sigstore.dev")  # fmt: skip
    flags.text("--rekor-url", "URL", "transparency log; with a key, log the signature there")
    flags.switch("--no-tlog-upload", "with a key, do not upload to the transparency log")
    flags.text("--identity-token", "TOKEN", "identity for keyless signing (default: SIGSTORE_ID_TOKEN, CI job, browser)")  # fmt: skip
    flags.text("--trusted-root", "FILE", "keys of a private Sigstore instance")
    flags.text("--trust-config", "FILE", "keys and addresses of a private Sigstore instance")
    flags.text("--timeout", "SECONDS", "time out requests to other services after this long", type=float, default=120.0)  # fmt: skip


def run(args: Arguments) -> int:
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
