"""The journal of policies that write `random()` codes into a ConfigMap: issuing a code into it by hand.

Its codes are plain text to whoever may read it; that is what such a policy is. Its form is what `parse_yaml` of a policy reads:
a list, one code to a line.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from controllers.kube.errors import Conflict
from controllers.kube.kinds import CONFIG_MAPS
from engine.errors import EngineError
from kubectl_kpolicy.output.misuse import Misuse

if TYPE_CHECKING:
    from controllers.kube import Client

_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_LENGTH: Final = 8
_FIELD: Final = "codes"
_LARGEST: Final = 1 << 20
_TRIES: Final = 5


def place_of(text: str) -> tuple[str, str]:
    """Read `NAMESPACE/NAME`; raises EngineError."""
    namespace, slash, name = text.partition("/")
    if not (slash and namespace and name):
        raise Misuse(f"`{text}` is no journal", help="write --journal NAMESPACE/NAME")
    return namespace, name


def journal_code() -> str:
    """Return a code of the form that such policies make: eight small letters and digits."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))


async def add(client: Client, place: tuple[str, str], code: str, *, dry_run: bool = False) -> None:
    """Append a code to a journal; raises Conflict when others keep changing it, and KubeError.

    The patch names the version that was read, so that a code which a policy adds meanwhile is not lost.
    """
    namespace, name = place
    for attempt in range(_TRIES):
        obj = await client.get(CONFIG_MAPS, name, namespace)
        before = str((obj.get("data") or {}).get(_FIELD) or "").rstrip("\n")
        after = f"{before}\n- {code}" if before else f"- {code}"
        if len(after) > _LARGEST:
            raise EngineError(f"journal `{namespace}/{name}` is full", help="take used codes out of it")  # fmt: skip
        patch = {"metadata": {"resourceVersion": obj["metadata"].get("resourceVersion")}, "data": {_FIELD: after}}  # fmt: skip
        try:
            await client.patch(CONFIG_MAPS, name, namespace, patch, dry_run=dry_run)
        except Conflict:
            if attempt == _TRIES - 1:
                raise
        else:
            return
