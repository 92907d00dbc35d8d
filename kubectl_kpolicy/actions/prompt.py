"""What a line typed after `:` means: a screen with a filter, a namespace, a view, a theme, write access, or nonsense."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.record import record
from kubectl_kpolicy.output.misuse import suggestion

from .screens import LISTINGS, SCREENS, listing_named

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_EXTRA = {"q": "quit", "q!": "quit", "quit": "quit", "exit": "quit", "help": "help", "h": "help"}
COMMAND_WORDS = {
    "ns": "a namespace, or all",
    "view": "a saved view",
    "theme": "colours",
    "write": "unlock changes for 15 minutes",
    "readonly": "lock changes",
    "ctx": "another context of the kubeconfig",
    "contexts": "several contexts side by side: a,b,prod-*",
    "explain": "why policies decide so about KIND/NAME",
    "at": "an instant of a recording",
    "save": "keep what is shown as a view",
}
"""The words of the command line that are no screens, with what follows or happens."""

VERBS = tuple(COMMAND_WORDS)


@record
class Command:
    """What is to be done (`go`, `ns`, `view`, …), with its words; `problem` says why it cannot be understood."""

    verb: str
    word: str = ""
    rest: str = ""
    problem: str = ""


def understand(
    line: str, aliases: Mapping[str, str] = MappingProxyType({}), plugins: Collection[str] = ()
) -> Command:
    """Return what a line means; `aliases` are words of somebody's own, each for the beginning of a line, `plugins` names of programs."""
    first, _, rest = line.strip().partition(" ")
    if first in aliases:
        first, _, rest = f"{aliases[first].removeprefix(':')} {rest}".strip().partition(" ")
    name = first.lower()
    if name in _EXTRA:
        return Command(_EXTRA[name])
    if name in VERBS:
        return Command(name, rest.strip())
    if name == "pulse":
        return Command("go", "pulse")
    listing = listing_named(name)
    if listing is None and first in plugins:
        return Command("plugin", first)
    if listing is not None and rest.strip().startswith("@"):
        return Command("ctx", rest.strip()[1:], listing.noun)
    if listing is None:
        return Command("", name, problem=_unknown(name, [*aliases, *plugins]))
    return Command("go", listing.noun, _filter(rest.strip()))


def _filter(rest: str) -> str:
    """Return what follows a screen as a filter: k9s' `/text`, a bare word as a namespace, else as it is."""
    if rest.startswith("/"):
        return rest[1:]
    if rest and rest.replace("-", "").isalnum() and " " not in rest:
        return f"ns={rest}"
    return rest


def _unknown(name: str, own: Iterable[str]) -> str:
    words = [*own, *VERBS, *_EXTRA, *SCREENS, *(alias for one in LISTINGS.values() for alias in one.aliases)]  # fmt: skip
    return f"`{name}` is no screen; {suggestion(name, words, '? lists them')}"
