"""Bringing a code along: an object from a file is applied with the code in its annotation, which no command line shows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from controllers.kube import Client, Discovery
from controllers.kube.client import APPLY
from controllers.kube.errors import KubeError
from engine import vocabulary
from engine.codes import CODE_ANNOTATION, canonical, issued_name, shown
from engine.errors import EngineError
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session.errors import admission

from .showing import read_code

if TYPE_CHECKING:
    from engine.model import Object

MANAGER = "kpolicy"


def carrying(obj: Object, code: str) -> Object:
    """Return an object that carries a code beside those that it carries already."""
    metadata = obj.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    before = str(annotations.get(CODE_ANNOTATION) or "")
    codes = ",".join(filter(None, (before, shown(code))))
    return {**obj, "metadata": {**metadata, "annotations": {**annotations, CODE_ANNOTATION: codes}}}


def object_in(name: str) -> Object:
    """Return the one object that a file holds, `-` for standard input; raises EngineError."""
    from kubectl_kpolicy.session.sources import read_documents

    found = read_documents([name])
    objects: list[Object] = [one.value for one in found if isinstance(one.value, dict)]
    if len(objects) != 1:
        raise EngineError(f"`{name}` holds {len(objects)} objects", help="a code is for one")
    return objects[0]


async def bring(client: Client, obj: Object, namespace: str, *, dry_run: bool = False) -> Object:
    """Apply an object and return it as stored; raises Refused where admission denies it, EngineError and KubeError."""
    discovery = Discovery(client)
    await discovery.refresh()
    kind = discovery.find(str(obj.get("apiVersion")), str(obj.get("kind")))
    if kind is None:
        raise EngineError(
            f"the server has no kind `{obj.get('kind')}` in `{obj.get('apiVersion')}`"
        )
    metadata = obj["metadata"]
    place = str(metadata.get("namespace") or namespace) if kind.namespaced else ""
    if not metadata.get("name"):
        raise EngineError("the object has no name", help="one with generateName cannot be applied")
    with admission():
        return await client.patch(
            kind, str(metadata["name"]), place, obj, content_type=APPLY, field_manager=MANAGER, force=True, dry_run=dry_run
        )  # fmt: skip


# The code itself: from a prompt, from standard input, or from under a seal, whose opening is told.


def code_of(code_id: str, sealed: str, key: str, *, may_ask: bool) -> str:
    """Return the code, which is the one that is named where one is; raises EngineError.

    `sealed` and `key` are files; without them the code is read, from a prompt if we `may_ask`.
    """
    if bool(sealed) != bool(key):
        raise Misuse("a sealed code needs both the file and the key", help="--sealed FILE --key PRIVATE-KEY")  # fmt: skip
    wanted = code_id.removeprefix("onetimecode.kpolicy.io/")
    if canonical(wanted) is not None:
        raise Misuse("that is a code, and a code is no argument: others can read it", help="make it void, and give the next one when asked for it")  # fmt: skip
    code = _unsealed(sealed, key, wanted) if sealed else read_code(may_ask=may_ask)
    if wanted and issued_name(code) != wanted:
        raise EngineError(f"that is not the code of `{wanted}`", help="nothing was sent, so that it does not count as a wrong try")  # fmt: skip
    return code


def _unsealed(sealed: str, key: str, wanted: str) -> str:
    from .sealing import opened, read_private, sealed_in

    found = sealed_in(sealed)
    chosen = [one for one in found if not wanted or one["metadata"]["name"] == wanted]
    if len(chosen) != 1:
        there = ", ".join(map(_described, found))
        raise Misuse("say which code is to be used" if chosen else f"`{sealed}` holds no code `{wanted}`", help=f"there are {there}")  # fmt: skip
    code = canonical(opened(chosen[0], read_private(key)))
    if code is None:
        raise EngineError(f"what is sealed in `{sealed}` is no code")
    return code


def _described(sealed: Object) -> str:
    spec = sealed.get("spec") or {}
    return f"{sealed['metadata']['name']} (for {spec.get('user', 'somebody')})"


async def announce(client: Client, code: str, system: str) -> None:
    """Tell everybody by an Event that a seal was opened; who may write none is warned that the use alone will be on record."""
    from kubectl_kpolicy.session.identity import leave_event

    name = issued_name(code)
    about = {"apiVersion": vocabulary.KPOLICY, "kind": "OneTimeCode", "name": name, "namespace": system}  # fmt: skip
    done = f"opened the seal of {name}"
    try:
        await leave_event(client, about, "kpolicy-seal-", "SealOpened", done)
    except KubeError as error:
        print(
            f"warning: no Event about the opened seal could be written: {error.message}",
            file=sys.stderr,
        )
