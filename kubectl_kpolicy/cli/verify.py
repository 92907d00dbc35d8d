"""`kubectl kpolicy verify`: check the signatures of manifests, offline, as a manifests rule would."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .flags import request_of

if TYPE_CHECKING:
    import argparse


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its flags."""
    parser = sub.add_parser(
        "verify",
        description="Verify the signatures of the manifests in a file. All named signers must have signed.",
        epilog="example: kubectl kpolicy verify -f exception.yaml.signed -k cosign.pub",
    )
    add = parser.add_argument
    add("-f", "--filename", required=True, metavar="FILE", help="manifests; - reads standard input")
    add("-k", "--key", action="append", default=[], metavar="FILE", help="public key of a signer")
    add("--certificate", default="", metavar="FILE", help="certificate of a signer")
    add("--certificate-chain", default="", metavar="FILE",
        help="intermediates and root of the signer's certificate")  # fmt: skip
    add("--certificate-identity", default="", metavar="NAME",
        help="keyless signer: e-mail or address, with wildcards")  # fmt: skip
    add("--certificate-identity-regexp", default="", metavar="REGEXP",
        help="keyless signer, as a regular expression")  # fmt: skip
    add("--certificate-oidc-issuer", default="", metavar="URL",
        help="OIDC issuer of the keyless signer, with wildcards")  # fmt: skip
    add("--certificate-oidc-issuer-regexp", default="", metavar="REGEXP",
        help="OIDC issuer of the keyless signer, as a regular expression")  # fmt: skip
    add("--trusted-root", default="", metavar="FILE", help="keys of a private Sigstore instance")
    add("--trust-config", default="", metavar="FILE",
        help="keys and addresses of a private Sigstore instance")  # fmt: skip
    add("--ignore-sct", action="store_true",
        help="accept certificates without a signed certificate timestamp")  # fmt: skip
    add("--ignore-tlog", action="store_true",
        help="do not require a log entry; certificates must then be valid now")  # fmt: skip
    add("--annotation-domain", default="cosign.sigstore.dev", metavar="DOMAIN",
        help="prefix of the signature annotations")  # fmt: skip
    add("-o", "--output", choices=("text", "json"), default="text", help="output format")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Verify every document; return 0 when all verify, 1 when one does not, 2 for wrong use."""
    from engine.errors import EngineError
    from kubectl_kpolicy.signing.session import VerifyRequest, print_answers, verify_file

    try:
        outcomes = verify_file(request_of(VerifyRequest, args))
    except EngineError as error:
        where = f"{error.at}: " if str(error.at) else ""
        print(f"error: {where}{error.message}", file=sys.stderr)
        if error.help:
            print(f"  help: {error.help}", file=sys.stderr)
        return 2
    return print_answers(outcomes, args.output, sys.stdout)
