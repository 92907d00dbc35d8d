"""Agreeing to a code by the id of a denial, claiming one in strict mode, and asking the engine for another key of all codes."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final

from engine import vocabulary
from engine.codes import use_name
from engine.codes.requests import CodeRequest, approval_of, read_request_id
from engine.grants.subjects import subject_text
from kubectl_kpolicy.output.diagnostics import ExitCode, visible
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster
from kubectl_kpolicy.session.errors import admission
from kubectl_kpolicy.session.identity import somebody

from . import issuing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controllers.kube import Access, Client
    from engine.model import Object

    from .commands import OtpRequest


_USE: Final = re.compile(r"use-[a-z2-7]{26}")


def approve(flags: OtpRequest) -> int:
    """Agree to a request: from then on the same denial shows its maker a code; raises EngineError."""
    asked, ttl = read_request_id(flags.request), issuing.read_ttl(flags.ttl)
    if asked is None:
        raise Misuse("that is no id of a request for a code", help="copy it from the denial: it begins with cr1.")  # fmt: skip

    async def work(client: Client, _access: Access) -> int:
        who = await somebody(client)
        obj = approval_of(
            flags.request, asked, who.user, tuple(who.groups), cluster.now() + ttl, flags.reason, flags.system_namespace
        )  # fmt: skip
        if flags.dry_run == "client":
            await issuing.judge(client, obj, cluster.now())
        else:
            obj = await issuing.issue(client, obj, cluster.now(), dry_run=flags.on_server)
        print(visible(f"onetimecode.kpolicy.io/{obj['metadata']['name']} approved{flags.tried}"))
        if not flags.quiet:
            print(visible(f"{_meaning(asked)}, until {obj['spec']['expiresAt']}; the same denial now shows the code"), file=sys.stderr)  # fmt: skip
        return ExitCode.DONE

    return cluster.with_client(flags.connection, work)


def _meaning(asked: CodeRequest) -> str:
    place = f" in {asked.namespace}" if asked.namespace else ""
    return f"{asked.user} may pass {subject_text(asked.policy, asked.rules)} once with {asked.kind}/{asked.name}{place}"


def claim(flags: OtpRequest) -> int:
    """Claim a code that a denial showed, where codes are not brought by the object itself; raises EngineError."""
    from controllers.kube.kinds import CODE_CLAIMS

    from .showing import read_code

    use = flags.use or use_name(read_code(may_ask=not flags.non_interactive))
    if not _USE.fullmatch(use):
        raise Misuse("that is no id of a use", help="a denial shows it (use-…); a code is never an argument")  # fmt: skip

    async def work(client: Client, access: Access) -> int:
        who = await somebody(client)
        obj = claim_of(use, who.user, who.groups, access.namespace or "default")
        with admission():
            made = await client.create(CODE_CLAIMS, obj, dry_run=flags.on_server)
        print(visible(f"codeclaim.kpolicy.io/{made['metadata']['name']} made{flags.tried}"))
        if not flags.quiet:
            print(
                "the object that was denied passes once within the hour, as it is", file=sys.stderr
            )
        return ExitCode.DONE

    if flags.dry_run == "client":
        print("codeclaim.kpolicy.io made (client dry run)")
        return ExitCode.DONE
    return cluster.with_client(flags.connection, work)


def claim_of(use: str, user: str, groups: Sequence[str], namespace: str) -> Object:
    """Return the object by which `user` claims the code with this use; the code cannot be got back from it."""
    return {
        "apiVersion": vocabulary.KPOLICY,
        "kind": "CodeClaim",
        "metadata": {"generateName": "claim-", "namespace": namespace},
        "spec": {"user": user, "groups": sorted({*groups}), "uses": [use]},
    }


def rotate(flags: OtpRequest) -> int:
    """Ask the engine for another key of codes; with `--revoke` all codes that are out are dead; raises EngineError."""
    from controllers.kube.kinds import SECRETS
    from controllers.store.code_keys import ROTATE, SECRET_NAME

    async def work(client: Client, _access: Access) -> int:
        who = await somebody(client)
        how = "revoke" if flags.revoke else "rotate"
        asked = {"metadata": {"annotations": {ROTATE: f"{how} {who.user}: {flags.reason}"}}}
        with admission():
            await client.patch(
                SECRETS, SECRET_NAME, flags.system_namespace, asked, dry_run=flags.on_server
            )
        what = "all codes are revoked" if flags.revoke else "another key is made; codes of the one before stay good"  # fmt: skip
        print(visible(f"secret/{SECRET_NAME} asked{flags.tried}: {what} within seconds"))
        return ExitCode.DONE

    if flags.dry_run == "client":
        print(f"secret/{SECRET_NAME} asked (client dry run)")
        return ExitCode.DONE
    return cluster.with_client(flags.connection, work)
