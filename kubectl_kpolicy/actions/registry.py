"""What an action is, and how the console finds the one a key means on a screen.

An action knows its help, how dangerous it is, which rights it needs and which command line does the same. Nothing here knows a
terminal library, so commands can use it as well.
"""

from __future__ import annotations

import shlex
from enum import IntEnum
from typing import TYPE_CHECKING

from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.session.identity import Right

TUI = "kubectl kpolicy tui"
"""How the command lines of what only moves about in the console begin."""


class Danger(IntEnum):
    """What an action can do at worst."""

    LOOKS = 0
    """It only shows something else."""
    ASKS = 1
    """It opens a form; nothing changes before that is confirmed."""
    CHANGES = 2
    """It changes the cluster and can be taken back."""
    DESTROYS = 3
    """It ends or deletes something; a dialog asks with the effect."""


@record
class Field:
    """One thing to fill in: its id, what stands before and in the empty field, what is filled in already.

    What is `hidden` is never shown, and never said again.
    """

    name: str
    label: str
    prompt: str
    given: str = ""
    hidden: bool = False


@record
class Action:
    """One thing to do. `screens` are where it is offered (none: everywhere); `command` has row cells in braces.

    `footer` orders what the footer shows (0: not there); `bulk` says that it takes all marked rows at once.

    `handler` names what the console does, as `module.function` below its handlers, which gets what is `given` before itself;
    without one a dialog asks for `fields` and then does the `work`. `typed` is the cell whose text is typed before something is
    destroyed, `unfit` says why a row is none for it, `named` gives another title for some rows, by who looks. After what is
    `cheap` nothing but the cursor has changed.
    """

    id: str
    title: str
    help: str
    keys: tuple[str, ...]
    danger: Danger
    command: str
    rights: tuple[Right, ...] = ()
    screens: tuple[str, ...] = ()
    needs_row: bool = False
    bulk: bool = False
    footer: int = 0
    handler: str = ""
    given: tuple[int | str, ...] = ()
    cheap: bool = False
    fields: tuple[Field, ...] = ()
    typed: str = "name"
    unfit: Callable[[Row], str] | None = None
    named: Callable[[Row, str], str] | None = None
    work: str | Callable[..., Awaitable[str]] = ""

    @property
    def changes(self) -> bool:
        """Whether it changes the cluster, and is therefore off in read-only mode."""
        return self.danger >= Danger.CHANGES

    @property
    def is_guarded(self) -> bool:
        """Whether it leads to a change, at once or through a form."""
        return self.changes or (self.danger >= Danger.ASKS and bool(self.rights))

    @property
    def is_told(self) -> bool:
        """Whether the command log tells of it: it asks or changes something, and does not merely move about."""
        return not self.command.startswith(TUI)


class Registry:
    """All actions, with the keys that people gave them; asked by screen and key."""

    def __init__(
        self, actions: Iterable[Action], keymap: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._actions = {action.id: action for action in actions}
        self._keys = dict(keymap or {})
        self._by_key: dict[tuple[str, str], Action] = {}
        for action in self._actions.values():
            for screen in action.screens or ("",):
                for key in self.keys(action):
                    self._by_key.setdefault((screen, key), action)

    def __iter__(self) -> Iterator[Action]:
        return iter(self._actions.values())

    def keys(self, action: Action) -> tuple[str, ...]:
        """Return the keys of an action, remapped ones in place of its own."""
        given = self._keys.get(action.id)
        return action.keys if given is None else tuple(given)

    def key_of(self, name: str) -> str:
        """Return the first key of an action, empty where it has none."""
        action = self.get(name)
        return next(iter(self.keys(action)), "") if action is not None else ""

    def get(self, name: str) -> Action | None:
        """Return an action by its id."""
        return self._actions.get(name)

    def of_key(self, screen: str, key: str) -> Action | None:
        """Return what a key does on a screen: the screen's own action first."""
        return self._by_key.get((screen, key)) or self._by_key.get(("", key))

    def on(self, screen: str) -> list[Action]:
        """Return what can be done on a screen: its own actions, then those of every screen."""
        own = [one for one in self._actions.values() if screen in one.screens]
        return [*own, *(one for one in self._actions.values() if not one.screens)]

    def footer(self, screen: str) -> list[Action]:
        """Return the actions for a footer, the most wanted first."""
        return sorted((one for one in self.on(screen) if one.footer), key=lambda one: one.footer)

    def clashes(self) -> list[str]:
        """Return a sentence for each key that means two things on one screen."""
        found = []
        screens = {screen for one in self._actions.values() for screen in one.screens}
        for screen in sorted(screens) or [""]:
            taken: dict[str, str] = {}
            for action in self.on(screen):
                for key in self.keys(action):
                    if key in taken:
                        found.append(f"`{key}` is both `{taken[key]}` and `{action.id}` on {screen}")  # fmt: skip
                    taken.setdefault(key, action.id)
        return found


def command_line(
    action: Action, rows: Sequence[Row], parts: Mapping[str, str] | None = None, **words: str
) -> str:
    """Return the command line that does the same, one for each row, joined by ` && `; values are quoted for a shell.

    `parts` are put in as they are, `words` and cells are values.
    """
    template = action.command
    for name, text in (parts or {}).items():
        template = template.replace(f"<{name}>", text)
    lines = [_filled(template, row, words) for row in rows] or [_filled(template, None, words)]
    return " && ".join(dict.fromkeys(lines))


def _filled(template: str, row: Row | None, words: Mapping[str, str]) -> str:
    """Fill in a template; a part in brackets goes when one of its cells is empty."""
    made = template
    while "[" in made:
        head, _, rest = made.partition("[")
        inner, _, tail = rest.partition("]")
        text = _braces(inner, row, words)
        made = f"{head}{text if text is not None else ''}{tail}"
    return " ".join((_braces(made, row, words, needed=True) or "").split("\0"))


def _braces(
    text: str, row: Row | None, words: Mapping[str, str], *, needed: bool = False
) -> str | None:
    """Replace `{name}`; None when a name has no value, unless `needed`: then its name in capitals stands there."""
    made = ""
    while "{" in text:
        head, _, rest = text.partition("{")
        name, _, text = rest.partition("}")
        value = words.get(name) or (row.text(name) if row is not None else "")
        if not value and not needed:
            return None
        made += head + (shlex.quote(value) if value else name.upper())
    return made + text


# Why an action is not possible now: read-only, no rights, nothing behind the console; one sentence with the way out.

READ_ONLY = "read-only: `:write` unlocks for 15 min"


def refusal(
    action: Action, *, read_only: bool, rights: Mapping[Right, bool], has_row: bool = True, kind: str = ""
) -> str:  # fmt: skip
    """Return why an action is refused, empty when it is not; rights that are not known are not in the way.

    `kind` is that of the object behind the row.
    """
    if action.needs_row and not has_row:
        return "needs a row"
    if not action.is_guarded:
        return ""
    if read_only:
        return READ_ONLY
    needed = [right for right in action.rights if right.kind in ("", kind)]
    missing = [str(right) for right in needed if rights.get(right) is False]
    return f"you may not {', '.join(missing)}" if missing else ""
