"""People who ask, bring codes, decide, and try what they may not; each does one thing after the other until told to stop.

They know an API server as a Client and nothing else, so the same people live on a server of memory and on a real one.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from controllers.kube import AlreadyExists, Forbidden, KubeError, NotFound
from controllers.kube.kinds import (
    CODE_CLAIMS,
    CONFIG_MAPS,
    GRANTS,
    ONE_TIME_CODES,
    PODS,
    POLICY_EXCEPTIONS,
)
from engine.codes import canonical, issued_code, issued_name, use_name, verifier_of
from engine.codes.requests import approval_of, read_request_id

from .record import REFUSED, STORED, Attempt

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from .record import History

CODE = re.compile(r"(?:[0-9A-Z]{4}-){4}[0-9A-Z]{4}")
REQUEST = re.compile(r"otp approve (cr1\.\S+)")
ACKNOWLEDGED, APPROVED, STRICT = "ack", "appr", "strict"
SPACES = (ACKNOWLEDGED, APPROVED, STRICT)
APPROVERS = ("bob", "cyd")
IMAGES = ("app", "debug")


@dataclass(slots=True)
class Board:
    """What people tell each other: requests for approval, codes that leaked, exceptions they once saw."""

    requests: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    exceptions: list[dict[str, Any]] = field(default_factory=list)
    grants: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Place:
    """Where people live: a connection for a name, the time, the history and the board.

    `spaces` is the end of the names of its namespaces. Where `changes_lists` is false, lists in Pods cannot be replaced.
    """

    connect: Callable[[str], Any]
    now: Callable[[], float]
    clock: Callable[[], Any]
    history: History
    board: Board
    pace: float = 1.0
    grant_for: tuple[str, ...] = ("20s", "40s", "90s")
    spaces: str = ""
    changes_lists: bool = True

    def space(self, name: str) -> str:
        """Return the namespace of a kind that is this history's."""
        return f"{name}{self.spaces}"


class Person:
    """Somebody who acts by chance; `act` until `over` is set."""

    def __init__(self, name: str, place: Place, chance: random.Random) -> None:
        self.name, self._place, self._chance = name, place, chance
        self._client = place.connect(name)
        self._count = 0
        self.over = asyncio.Event()

    async def act(self) -> None:
        deeds = [
            (6, self._redeem_pod), (6, self._redeem_map), (2, self._label), (3, self._image), (2, self._debug),
            (1, self._delete), (4, self._ask), (2, self._end), (4, self._ride), (2, self._steal), (1, self._revive), (1, self._generated),
        ]  # fmt: skip
        if self.name in APPROVERS:
            deeds += [(6, self._agree), (12, self._decide), (3, self._issue)]
        while not self.over.is_set():
            await asyncio.sleep(self._chance.uniform(0.1, 2.0) * self._place.pace)
            [deed] = self._chance.choices([one for _, one in deeds], [weight for weight, _ in deeds])  # fmt: skip
            with suppress(KubeError):
                await deed()
        await self._client.close()

    # What is sent, and what is remembered of it.

    async def _send(
        self, what: str, obj: dict[str, Any], send: Any, *codes: str, dry_run: bool = False
    ) -> Attempt:
        attempt = Attempt(self._place.now(), self.name, what, obj, tuple(filter(None, map(canonical, codes))), dry_run)  # fmt: skip
        self._place.history.attempts.append(attempt)
        try:
            made = await send
            attempt.outcome, attempt.uid = STORED, str((made or {}).get("metadata", {}).get("uid") or "")  # fmt: skip
        except (Forbidden, AlreadyExists, NotFound) as error:
            attempt.outcome, attempt.answer = REFUSED, error.message
        except KubeError as error:
            attempt.answer = error.message
        attempt.ended = self._place.now()
        self._place.board.codes += [found[0] for found in CODE.finditer(attempt.answer)]
        return attempt

    async def _create(
        self, kind: Any, obj: dict[str, Any], *codes: str, dry_run: bool = False
    ) -> Attempt:
        carried = with_codes(obj, *codes)
        return await self._send("create", carried, self._client.create(kind, carried, dry_run=dry_run), *codes, dry_run=dry_run)  # fmt: skip

    async def _update(self, kind: Any, obj: dict[str, Any], patch: Any, *codes: str) -> Attempt:
        metadata = obj["metadata"]
        if codes:
            patch = merged_annotation(patch, ",".join(codes))
        return await self._send("patch", {**obj, "patch": patch}, self._client.patch(kind, metadata["name"], metadata["namespace"], patch), *codes)  # fmt: skip

    def _space(self) -> str:
        return self._place.space(self._chance.choice((ACKNOWLEDGED, APPROVED, *SPACES)))

    def _name(self) -> str:
        """Return a name of one's own, sometimes one that all use."""
        self._count += 1
        return self._chance.choice((f"{self.name}-{self._count}", f"{self.name}-{self._count}", "shared-1", "shared-2"))  # fmt: skip

    # What people do with codes.

    async def _redeem_pod(self) -> None:
        space = self._space()
        await self._redeem(PODS, pod(self._name(), space, self._chance.choice(IMAGES)))

    async def _generated(self) -> None:
        await self._redeem(PODS, pod(f"{self.name}-gen-", self._place.space(ACKNOWLEDGED)))

    async def _redeem_map(self) -> None:
        await self._redeem(CONFIG_MAPS, config(self._name(), self._space(), debug=True))

    async def _redeem(self, kind: Any, obj: dict[str, Any]) -> None:
        """Be refused, bring the code, and try once more or twice at once what may pass once."""
        said = await self._create(kind, obj, dry_run=self._chance.random() < 0.3)
        if asked := REQUEST.search(said.answer):
            self._place.board.requests.append(asked[1])
            if self._chance.random() < 0.3:
                await self._agree_to(asked[1])
            await asyncio.sleep(self._chance.uniform(0.5, 4.0) * self._place.pace)
            said = await self._create(kind, obj, dry_run=True)
        found = CODE.search(said.answer)
        if found is None:
            return
        code = found[0]
        if "otp claim" in said.answer:
            await self._claim(code, obj["metadata"]["namespace"])
            code = ""
        spelled = self._chance.choice((code, code.lower(), code.replace("-", "")))
        carried = [spelled] if code else []
        if self._chance.random() < 0.4:
            other = pod(f"{self.name}-{self._count}-other", obj["metadata"]["namespace"]) if self._chance.random() < 0.5 else obj  # fmt: skip
            await asyncio.gather(self._create(kind, obj, *carried), self._create(kind if other is obj else PODS, other, *carried))  # fmt: skip
        else:
            first = await self._create(kind, obj, *carried, dry_run=self._chance.random() < 0.1)
            if first.outcome != STORED or first.dry_run:
                await self._create(kind, obj, *carried)
        if self._chance.random() < 0.4:
            await self._again(kind, obj, carried)

    async def _again(self, kind: Any, obj: dict[str, Any], carried: list[str]) -> None:
        """Try to use a code a second time: for the object once it is gone, or another."""
        metadata = obj["metadata"]
        if metadata.get("name"):
            await self._send("delete", obj, self._client.delete(kind, metadata["name"], metadata["namespace"]))  # fmt: skip
        await self._create(kind, obj, *carried)

    async def _claim(self, code: str, space: str) -> None:
        self._count += 1
        obj = {
            "apiVersion": CODE_CLAIMS.api_version, "kind": CODE_CLAIMS.kind,
            "metadata": {"name": f"claim-{self.name}-{self._count}", "namespace": space},
            "spec": {"user": self.name, "uses": [use_name(canonical(code) or "")]},
        }  # fmt: skip
        await self._send("claim", obj, self._client.create(CODE_CLAIMS, obj))

    async def _steal(self) -> None:
        """Bring somebody else's code, or one's own for something else."""
        if self._place.board.codes:
            code = self._chance.choice(self._place.board.codes[-12:])
            obj = pod(self._name(), self._space(), self._chance.choice(IMAGES))
            await self._create(PODS, obj, code)

    async def _agree(self) -> None:
        """Approve somebody's request for a code."""
        if self._place.board.requests:
            await self._agree_to(self._chance.choice(self._place.board.requests[-6:]))

    async def _agree_to(self, text: str) -> None:
        """Approve a request; one's own, and as nobody who may, must not count."""
        asked = read_request_id(text)
        if asked is None:
            return
        ends = self._place.clock() + timedelta(minutes=30)
        obj = approval_of(text, asked, self.name, ("people",), ends, "seen and agreed", "kyverno")
        await self._send("approve", obj, self._client.create(ONE_TIME_CODES, obj))

    async def _issue(self) -> None:
        """Issue a code to somebody who then uses it, sometimes to oneself."""
        user = self._chance.choice(("ada", "eve", self.name))
        self._count += 1
        code = issued_code(self._chance.randbytes(16))
        space = self._place.space(ACKNOWLEDGED)
        obj = config(f"issued-{self.name}-{self._count}", space, debug=True)
        ends = (self._place.clock() + timedelta(minutes=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
        target = {"kind": "ConfigMap", "namespace": space, "name": obj["metadata"]["name"]}
        document = {
            "apiVersion": ONE_TIME_CODES.api_version, "kind": ONE_TIME_CODES.kind,
            "metadata": {"name": issued_name(code), "namespace": "kyverno"},
            "spec": {
                "user": user, "issuedBy": self.name, "issuedByGroups": ["people"], "expiresAt": ends, "verifier": verifier_of(code), "reason": "the pager woke us up",
                "binding": {"policy": "no-debug", "rules": ["debug-off"], "object": target},
            },
        }  # fmt: skip
        if (await self._send("issue", document, self._client.create(ONE_TIME_CODES, document))).outcome == STORED:  # fmt: skip
            friend = self._place.connect(user)
            carried = with_codes(obj, code)
            await asyncio.gather(*(self._send(f"as {user} create", carried, friend.create(CONFIG_MAPS, carried), code) for _ in range(2)))  # fmt: skip
            await friend.close()

    # What people do with objects that are there.

    async def _some(self, kind: Any) -> dict[str, Any] | None:
        items = (await self._client.list(kind, self._space())).items
        mine = [one for one in items if one["metadata"]["name"].startswith((self.name, "shared", "old", "issued"))]  # fmt: skip
        found = self._chance.choice(mine) if mine else None
        return {"apiVersion": kind.api_version, "kind": kind.kind, **found} if found else None

    async def _label(self) -> None:
        if obj := await self._some(self._chance.choice((PODS, CONFIG_MAPS))):
            kind = PODS if obj["kind"] == "Pod" else CONFIG_MAPS
            await self._update(kind, obj, {"metadata": {"labels": {"touched": self._name()}}})

    async def _image(self) -> None:
        """Change an image, which is another violation where there is one; then with the code that the denial offers."""
        if obj := await self._some(PODS):
            image = self._chance.choice((*IMAGES, "miner"))
            spec = {"containers": [{**obj["spec"]["containers"][0], "image": image}]}
            if not self._place.changes_lists:
                spec = {"containers": spec["containers"]}
            await self._with_code(PODS, obj, {"spec": spec})

    async def _debug(self) -> None:
        """Turn debugging on and off."""
        if obj := await self._some(CONFIG_MAPS):
            on = str(self._chance.random() < 0.6).lower()
            await self._with_code(CONFIG_MAPS, obj, {"data": {"debug": on, "more": self._chance.choice("xy")}})  # fmt: skip

    async def _with_code(self, kind: Any, obj: dict[str, Any], patch: Any) -> None:
        said = await self._update(kind, obj, patch)
        found = CODE.search(said.answer)
        if found is not None:
            for _ in range(self._chance.randrange(1, 4)):
                await self._update(kind, obj, patch, found[0])
                if kind is CONFIG_MAPS and self._chance.random() < 0.5:
                    await self._update(kind, obj, {"data": {"debug": "false"}})

    async def _delete(self) -> None:
        if obj := await self._some(self._chance.choice((PODS, CONFIG_MAPS))):
            kind, metadata = PODS if obj["kind"] == "Pod" else CONFIG_MAPS, obj["metadata"]
            await self._send("delete", obj, self._client.delete(kind, metadata["name"], metadata["namespace"]))  # fmt: skip

    # What people do with grants.

    async def _ask(self) -> None:
        self._count += 1
        space, name = (
            self._place.space(self._chance.choice((ACKNOWLEDGED, APPROVED))),
            f"{self.name}-{self._count}",
        )
        uses = {"uses": self._chance.randrange(1, 3)} if self._chance.random() < 0.5 else {}
        obj = {
            "apiVersion": GRANTS.api_version, "kind": GRANTS.kind,
            "metadata": {"name": f"g-{name}", "namespace": space},
            "spec": {
                "requester": self.name, "requesterGroups": ["people"], "policy": "no-host", "rules": ["host-pid"],
                "target": {"kind": "Pod", "name": self._chance.choice((f"{self.name}-ride", "shared-1"))}, "duration": self._chance.choice(self._place.grant_for),
                "reason": "the image is rebuilt on Monday", **uses,
            },
        }  # fmt: skip
        if (await self._send("ask for", obj, self._client.create(GRANTS, obj))).outcome == STORED:
            self._place.board.grants.append((space, obj["metadata"]["name"]))

    async def _end(self) -> None:
        await self._say("withdraw" if self._chance.random() < 0.5 else "drop", own=True)

    async def _decide(self) -> None:
        verdict = self._chance.choices(("approve", "deny", "revoke"), (8, 1, 2))[0]
        await self._say(verdict, own=self._chance.random() < 0.25)

    async def _say(self, verdict: str, *, own: bool) -> None:
        """Add a decision to one of the latest grants, as it is now."""
        places = [one for one in self._place.board.grants[-8:] if (self.name in one[1]) is own]
        if not places:
            return
        space, name = self._chance.choice(places)
        obj = await self._client.get(GRANTS, name, space)
        said = [*(obj["spec"].get("decisions") or ()), {"by": self.name, "verdict": verdict, "groups": ["people"]}]  # fmt: skip
        changed = {**obj, "spec": {**obj["spec"], "decisions": said}}
        await self._send(verdict, {"apiVersion": GRANTS.api_version, "kind": GRANTS.kind, **changed}, self._client.update(GRANTS, changed))  # fmt: skip

    async def _ride(self) -> None:
        """Create what a grant may let pass, without a code, one after the other or at once."""
        space = self._place.space(self._chance.choice((ACKNOWLEDGED, APPROVED)))
        obj = pod(self._chance.choice((f"{self.name}-ride", "shared-1")), space)
        exceptions = (await self._client.list(POLICY_EXCEPTIONS, space)).items
        self._place.board.exceptions += exceptions
        for _ in range(self._chance.randrange(1, 4)):
            if (await self._create(PODS, obj)).outcome == STORED:
                await self._send("delete", obj, self._client.delete(PODS, obj["metadata"]["name"], space))  # fmt: skip

    async def _revive(self) -> None:
        """Bring an exception back that was seen once, as GitOps tools do."""
        if self._place.board.exceptions:
            seen = self._chance.choice(self._place.board.exceptions[-6:])
            metadata = {key: value for key, value in seen["metadata"].items() if key in ("name", "namespace", "labels", "annotations", "ownerReferences")}  # fmt: skip
            obj = {"apiVersion": POLICY_EXCEPTIONS.api_version, "kind": POLICY_EXCEPTIONS.kind, "metadata": metadata, "spec": seen["spec"]}  # fmt: skip
            await self._send("bring back", obj, self._client.create(POLICY_EXCEPTIONS, obj))


def pod(name: str, space: str, image: str = "app") -> dict[str, Any]:
    """Return a Pod that the policy refuses; a name that ends with a dash is drawn by the server."""
    named = {"generateName": name} if name.endswith("-") else {"name": name}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {**named, "namespace": space},
        "spec": {"hostPID": True, "containers": [{"name": "c", "image": image}]},
    }  # fmt: skip


def config(name: str, space: str, *, debug: bool) -> dict[str, Any]:
    """Return a ConfigMap, which the policy refuses with debugging on."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": space}, "data": {"debug": str(debug).lower()}}  # fmt: skip


def with_codes(obj: dict[str, Any], *codes: str) -> dict[str, Any]:
    """Return an object that carries codes."""
    if not codes:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": {"kpolicy.io/code": ",".join(codes)}}}  # fmt: skip


def merged_annotation(patch: dict[str, Any], codes: str) -> dict[str, Any]:
    """Return a patch that brings codes, too."""
    return {**patch, "metadata": {**(patch.get("metadata") or {}), "annotations": {"kpolicy.io/code": codes}}}  # fmt: skip


def is_wrong(obj: dict[str, Any]) -> bool:
    """Tell whether an object violates what is enforced here; in words of its own."""
    if obj.get("kind") == "Pod":
        return (obj.get("spec") or {}).get("hostPID") is True
    return (obj.get("data") or {}).get("debug") == "true"
