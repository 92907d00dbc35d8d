"""Which webhooks of a configuration the API server takes, where it does not take all of them.

It judges a configuration as a whole, and what policies say of selectors, conditions and names stands in it as written. So each
webhook is put before it alone, in a dry run, and what it refuses is left out: one policy never keeps others from being enforced.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import orjson

from controllers.kube import Client, Invalid, Kind
from controllers.kube.kinds import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from engine.model.kinds import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Object, Policy

_MOST_REMEMBERED: Final = 4096


MOST_BYTES: Final = 1 << 20
"""What a configuration may take of the 1.5 MiB that an API server stores of one object."""


def fitting(document: Object) -> tuple[Object, list[Object]]:
    """Return a configuration that is not too large to be stored, and the webhooks left out for that: the largest ones."""
    webhooks = document["webhooks"]
    sizes = [len(orjson.dumps(one)) for one in webhooks]
    left, total = set(), sum(sizes)
    for number in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        if total <= MOST_BYTES:
            break
        left.add(number)
        total -= sizes[number]
    if not left:
        return document, []
    kept = [one for number, one in enumerate(webhooks) if number not in left]
    return {**document, "webhooks": kept}, [webhooks[number] for number in sorted(left)]


def kind_of(document: Object) -> Kind:
    """Return the kind of a webhook configuration."""
    is_mutating = document["kind"] == MUTATING_WEBHOOKS.kind
    return MUTATING_WEBHOOKS if is_mutating else VALIDATING_WEBHOOKS


class AcceptedWebhooks:
    """Asks the API server about webhooks, and remembers its verdict on each."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._verdicts: dict[str, bool] = {}

    async def among(
        self, document: Object, plain: Sequence[Object]
    ) -> tuple[list[Object], list[Object]]:
        """Return the webhooks of a configuration that are taken, and those that are not; raises KubeError.

        `plain` are the same ones without conditions that are tested by us as well: what is refused is tried so.
        """
        unconditional = {one["name"]: one for one in plain}
        taken, refused = [], []
        for webhook in document["webhooks"]:
            for version in (webhook, unconditional.get(webhook["name"], webhook)):
                if await self._is_taken(document, version):
                    taken.append(version)
                    break
            else:
                refused.append(webhook)
        return taken, refused

    async def _is_taken(self, document: Object, webhook: Object) -> bool:
        # where we are called changes often, and is no policy's to say
        said = {key: value for key, value in webhook.items() if key != "clientConfig"}
        text = orjson.dumps([document["kind"], said], option=orjson.OPT_SORT_KEYS)
        digest = hashlib.sha256(text).hexdigest()
        if digest not in self._verdicts:
            if len(self._verdicts) >= _MOST_REMEMBERED:
                self._verdicts.clear()
            self._verdicts[digest] = await self._asked(document, webhook, digest)
        return self._verdicts[digest]

    async def _asked(self, document: Object, webhook: Object, digest: str) -> bool:
        metadata = {"name": f"kpolicy-probe-{digest[:16]}"}
        probe = {**document, "metadata": metadata, "webhooks": [webhook]}
        try:
            await self._client.create(kind_of(document), probe, dry_run=True)
        except Invalid:
            return False
        return True


def is_asked_by(webhook: Object, policy: Policy) -> bool:
    """Tell whether a webhook asks us about a policy: by its path, and of a policy of a namespace by that, too."""
    config = webhook["clientConfig"]
    path = str(config.get("url") or config["service"]["path"])
    route = BY_NAME[policy.kind].route
    if not route:
        return path.endswith(f"/finegrained/{policy.key}")
    _, is_of_kind, names = path.rpartition(f"/{route}/")
    spaces = [
        values
        for one in (webhook.get("namespaceSelector") or {}).get("matchExpressions") or ()
        if (values := one.get("values"))
    ]
    is_there = not policy.namespace or [policy.namespace] in spaces
    return bool(is_of_kind) and policy.name in names.split("/") and is_there
