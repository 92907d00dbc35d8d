"""`kubectl kpolicy verify`: check the signatures of manifests, offline, as a manifests rule would."""

from __future__ import annotations

import sys

from .flags import Arguments, Flags, request_of


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.parser.description = "Verify the signatures of the manifests in a file. All named signers must have signed."  # fmt: skip
    flags.example("kubectl kpolicy verify -f exception.yaml.signed -k cosign.pub")
    flags.text("-f --filename", "FILE", "manifests; - reads standard input", required=True)
    flags.many("-k --key", "FILE", "public key of a signer")
    flags.text("--certificate", "FILE", "certificate of a signer")
    flags.text("--certificate-chain", "FILE", "intermediates and root of the signer's certificate")
    flags.text(
        "--certificate-identity", "NAME", "keyless signer: e-mail or address, with wildcards"
    )
    flags.text("--certificate-identity-regexp", "REGEXP", "keyless signer, as a regular expression")
    flags.text("--certificate-oidc-issuer", "URL", "OIDC issuer of the keyless signer, with wildcards")  # fmt: skip
    flags.text("--certificate-oidc-issuer-regexp", "REGEXP", "OIDC issuer of the keyless signer, as a regular expression")  # fmt: skip
    flags.text("--trusted-root", "FILE", "keys of a private Sigstore instance")
    flags.text("--trust-config", "FILE", "keys and addresses of a private Sigstore instance")
    flags.switch("--ignore-sct", "accept certificates without a signed certificate timestamp")
    flags.switch("--ignore-tlog", "do not require a log entry; certificates must then be valid now")
    flags.text("--annotation-domain", "DOMAIN", "prefix of the signature annotations", default="cosign.sigstore.dev")  # fmt: skip
    flags.output("text", "json")


def run(args: Arguments) -> int:
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
