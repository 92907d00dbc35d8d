"""Requests without a pause while something is disturbed, and what became of them: the three figures of docs/operations.md.

Pods that a policy refuses and Pods that none does are created by turns, as dry runs, by several senders with connections of their
own. An answer counts as one when it is a policy's or the API server's own; what a webhook that failed makes of a request is a
wrong refusal of a good Pod; what nobody answered is neither, and shows in the longest time without an answer.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

SENDERS = 3
_PATH = "/api/v1/namespaces/default/pods?dryRun=All&timeout=30s"
_PATIENCE = 35.0
_PAUSE = 0.05
"""Seconds between two requests of a sender: some thirty a second is a busy cluster, and leaves the machine to what is tried."""
NO_HOST_IPC = "no host IPC"
"""What the policy says of a bad Pod."""
_ASKED = "webhook"
"""Is in every message of the API server about a webhook that refused, or could not be asked."""


def pod(*, is_bad: bool) -> dict[str, Any]:
    """Return a Pod that the policy refuses, or one that it does not."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "load-"},
        "spec": {"hostIPC": is_bad, "containers": [{"name": "c", "image": "busybox"}]},
    }


@dataclass(slots=True)
class Load:
    """Requests as the administrator of a kubeconfig with certificates, from `with` to its end. Figures are whole afterwards."""

    kubeconfig: Path
    let_in: int = 0
    refused: int = 0
    admitted: int = 0
    unanswered: int = 0
    wrongly_refused: list[str] = field(default_factory=list)
    longest: float = 0.0
    problems: set[str] = field(default_factory=set)
    _answered_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._answered_at = time.monotonic()
        self._threads = [threading.Thread(target=self._run) for _ in range(SENDERS)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._note_gap()

    @property
    def answered(self) -> int:
        """How many requests had an answer that is right."""
        return self.refused + self.admitted

    def wait_for(self, more: int, seconds: float) -> bool:
        """Wait for so many more right answers; False when they do not come within the time."""
        wanted, end = self.answered + more, time.monotonic() + seconds
        while self.answered < wanted and time.monotonic() < end:
            time.sleep(0.1)
        return self.answered >= wanted

    def said(self) -> str:
        """Return the figures in one line."""
        return (
            f"wrongly allowed {self.let_in}, wrongly refused {len(self.wrongly_refused)}, of {self.refused} bad and"
            f" {self.admitted} good ones, {self.unanswered} not answered, longest without an answer {self.longest:.1f} s"
        )

    def _run(self) -> None:
        sender = _Sender(self.kubeconfig)
        is_bad = True
        while not self._stop.is_set():
            try:
                status, text = sender.create(pod(is_bad=is_bad))
            except (OSError, http.client.HTTPException) as error:
                self._count_silence(f"{type(error).__name__}: {error}")
            else:
                self._count(status, text, is_bad=is_bad)
            is_bad = not is_bad
            self._stop.wait(_PAUSE)

    def _count(self, status: int, text: str, *, is_bad: bool) -> None:
        is_by_policy = NO_HOST_IPC in text
        with self._lock:
            if status == http.client.CREATED:
                self.let_in += is_bad
                self.admitted += not is_bad
            elif is_bad and is_by_policy:
                self.refused += 1
            elif not is_bad and _ASKED in text:
                self.wrongly_refused.append(text[:300])
                return
            else:
                self.unanswered += 1
                self.problems.add(text[:200])
                return
            self._note_gap()

    def _count_silence(self, problem: str) -> None:
        with self._lock:
            self.unanswered += 1
            self.problems.add(problem[:200])
        self._stop.wait(0.2)

    def _note_gap(self) -> None:
        now = time.monotonic()
        self.longest = max(self.longest, now - self._answered_at)
        self._answered_at = now


class _Sender:
    """One connection to the API server, opened again after it broke."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        context.load_cert_chain(user["client-certificate"], user["client-key"])
        place = urlsplit(cluster["server"])
        self._connection = http.client.HTTPSConnection(
            str(place.hostname), place.port, timeout=_PATIENCE, context=context
        )

    def create(self, obj: dict[str, Any]) -> tuple[int, str]:
        """Create an object and return status and message; raises OSError or HTTPException."""
        try:
            self._connection.request("POST", _PATH, json.dumps(obj), {"Content-Type": "application/json"})  # fmt: skip
            answer = self._connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        except BaseException:
            self._connection.close()
            raise
