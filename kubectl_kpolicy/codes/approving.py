"""Agreeing to a code by the id of a denial, claiming one in strict mode, and asking the engine for another key of all codes."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final

from engine.codes import use_name
from engine.codes.requests import approval_of, read_request_id
from kubectl_kpolicy.grants.commands import guarded, somebody
from kubectl_kpolicy.grants.errors import of_server
from kubectl_kpolicy.output.diagnostics import ExitCode, visible
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster

from . import issuing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from controllers.kube import Access, Client
    from engine.codes.requests import CodeRequest
    from engine.model import Object


_USE: Final = re.compile(r"use-[a-z2-7]{26}")


def approve(args: argparse.Namespace) -> int:
    """Agree to a request: from then on the same denial shows its maker a code."""
    return guarded(_approve, args)


def _approve(args: argparse.Namespace) -> int:
    asked, ttl = read_request_id(args.request), issuing.read_ttl(args.ttl)
    if asked is None:
        raise Misuse("that is no id of a request for a code", help="copy it from the denial: it begins with cr1.")  # fmt: skip

    async def work(client: Client, _access: Access) -> int:
        who = await somebody(client)
        obj = approval_of(
            args.request, asked, who.user, tuple(who.groups), cluster.now() + ttl, args.reason, args.system_namespace
        )  # fmt: skip
        if args.dry_run == "client":
            await issuing.judge(client, obj, cluster.now())
        else:
            obj = await issuing.issue(client, obj, cluster.now(), dry_run=args.dry_run == "server")
        tried = "" if args.dry_run == "none" else f" ({args.dry_run} dry run)"
        print(visible(f"onetimecode.kpolicy.io/{obj['metadata']['name']} approved{tried}"))
        if not args.quiet:
            print(visible(f"{_meaning(asked)}, until {obj['spec']['expiresAt']}; the same denial now shows the code"), file=sys.stderr)  # fmt: skip
        return ExitCode.DONE

    return cluster.with_client(args, work)


def _meaning(asked: CodeRequest) -> str:
    rules = f"/{','.join(asked.rules)}" if asked.rules else ""
    place = f" in {asked.namespace}" if asked.namespace else ""
    return f"{asked.user} may pass {asked.policy}{rules} once with {asked.kind}/{asked.name}{place}"


def claim(args: argparse.Namespace) -> int:
    """Claim a code that a denial showed, where codes are not brought by the object itself."""
    return guarded(_claim, args)


def _claim(args: argparse.Namespace) -> int:
    from controllers.kube.errors import KubeError
    from controllers.kube.kinds import CODE_CLAIMS

    from .showing import read_code

    use = args.use or use_name(read_code(may_ask=not args.non_interactive))
    if not _USE.fullmatch(use):
        raise Misuse("that is no id of a use", help="a denial shows it (use-…); a code is never an argument")  # fmt: skip

    async def work(client: Client, access: Access) -> int:
        who = await somebody(client)
        obj = claim_of(use, who.user, who.groups, access.namespace or "default")
        try:
            made = await client.create(CODE_CLAIMS, obj, dry_run=args.dry_run == "server")
        except KubeError as error:
            raise of_server(error) from error
        tried = "" if args.dry_run == "none" else f" ({args.dry_run} dry run)"
        print(visible(f"codeclaim.kpolicy.io/{made['metadata']['name']} made{tried}"))
        if not args.quiet:
            print(
                "the object that was denied passes once within the hour, as it is", file=sys.stderr
            )
        return ExitCode.DONE

    if args.dry_run == "client":
        print("codeclaim.kpolicy.io made (client dry run)")
        return ExitCode.DONE
    return cluster.with_client(args, work)


def claim_of(use: str, user: str, groups: Sequence[str], namespace: str) -> Object:
    """Return the object by which `user` claims the code with this use; the code cannot be got back from it."""
    return {
        "apiVersion": "kpolicy.io/v1alpha1",
        "kind": "CodeClaim",
        "metadata": {"generateName": "claim-", "namespace": namespace},
        "spec": {"user": user, "groups": sorted({*groups}), "uses": [use]},
    }


def rotate(args: argparse.Namespace) -> int:
    """Ask the engine for another key of codes; with `--revoke` all codes that are out are dead."""
    return guarded(_rotate, args)


def _rotate(args: argparse.Namespace) -> int:
    from controllers.kube.errors import KubeError
    from controllers.kube.kinds import SECRETS
    from controllers.store.code_keys import ROTATE, SECRET_NAME

    async def work(client: Client, _access: Access) -> int:
        who = await somebody(client)
        how = "revoke" if args.revoke else "rotate"
        asked = {"metadata": {"annotations": {ROTATE: f"{how} {who.user}: {args.reason}"}}}
        try:
            await client.patch(
                SECRETS, SECRET_NAME, args.system_namespace, asked, dry_run=args.dry_run == "server"
            )
        except KubeError as error:
            raise of_server(error) from error
        tried = "" if args.dry_run == "none" else f" ({args.dry_run} dry run)"
        what = "all codes are revoked" if args.revoke else "another key is made; codes of the one before stay good"  # fmt: skip
        print(visible(f"secret/{SECRET_NAME} asked{tried}: {what} within seconds"))
        return ExitCode.DONE

    if args.dry_run == "client":
        print(f"secret/{SECRET_NAME} asked (client dry run)")
        return ExitCode.DONE
    return cluster.with_client(args, work)
