"""Colours of Kyverno's tables: names cyan, verdicts by their meaning; nothing at all where they are off."""

from __future__ import annotations

from dataclasses import dataclass

_BOLD = {"cyan": "36", "green": "32", "red": "31", "yellow": "33"}
_STATUS = {"Pass": "green", "Fail": "red", "Error": "red", "Warn": "yellow", "Skip": "cyan"}


@dataclass(frozen=True, slots=True)
class Colors:
    """Paints words with ANSI sequences when `on`."""

    on: bool = False

    def name(self, text: str) -> str:
        """Paint the name of a policy, rule or resource."""
        return self._painted(text, "cyan")

    def status(self, status: str, text: str = "") -> str:
        """Paint `text` (or the status itself) in the colour of a status."""
        return self._painted(text or status, _STATUS[status])

    def header(self, text: str) -> str:
        """Paint a table header."""
        return self._painted(text, "green")

    def _painted(self, text: str, color: str) -> str:
        return f"\x1b[{_BOLD[color]};1m{text}\x1b[0m" if self.on and text else text


PLAIN = Colors()
