"""Hotkeys and plugin commands of the configuration: lines of `:` and programs on keys of somebody's own.

A program is started with a list of arguments and never by a shell. Values of rows come from whoever writes to the cluster: they are
put in only where they are one plain word, which no program takes for a flag and no shell for anything but a word.
"""

from __future__ import annotations

import re
import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EngineError
from engine.record import field, record
from kubectl_kpolicy.output.misuse import suggestion

from .catalog import ALL
from .registry import TUI, Action, Danger
from .screens import SCREENS, listing_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.session.config import Config

OF_ROWS: Final = ("NAME", "NAMESPACE", "KIND", "POLICY", "RULE")
VARIABLES: Final = (*OF_ROWS, "CONTEXT", "USER")
"""What may stand behind `$` in arguments; those of rows need a row."""
_VARIABLE = re.compile(r"\$(\$|[A-Z][A-Z_]*)")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+=-]*")
"""INVARIANT: what is put into an argument begins no flag, and holds nothing that a shell, an expression or a pattern reads."""
_HIDDEN = {"tab", "enter", "escape", "ctrl+i", "ctrl+m", "ctrl+space", "ctrl+@", "space", "?", ":"}
_KEY = re.compile(r"\S|ctrl\+[a-z]|f([1-9]|1[0-9]|2[0-4])")


@record
class Plugin:
    """A program on a key: its arguments are texts, or lists of texts that go together where a variable in them has no value.

    `confirm` shows the whole command before it runs, `background` leaves the screen to the console, what is `dangerous` is off in
    read-only mode.
    """

    name: str
    command: str
    args: tuple[str | tuple[str, ...], ...] = ()
    description: str = ""
    confirm: bool = False
    background: bool = False
    dangerous: bool = True

    @property
    def template(self) -> str:
        """The command as it is written, its variables not yet filled in."""
        words = (word for one in self.args for word in ((one,) if isinstance(one, str) else one))
        return shlex.join((self.command, *words)).replace("'", "")

    @property
    def needs_row(self) -> bool:
        """Whether one of its variables is of a row."""
        return any(f"${name}" in self.template for name in OF_ROWS)


@record
class OwnKeys:
    """What keys of somebody's own do: actions, the `lines` that hotkeys run, and plugin commands by name."""

    actions: tuple[Action, ...] = ()
    lines: tuple[str, ...] = ()
    plugins: Mapping[str, Plugin] = field(default_factory=dict)


def own_keys(config: Config) -> OwnKeys:
    """Return what hotkeys and plugin commands do; raises EngineError, with file and line, for the first that cannot be."""
    found: list[Action] = []
    plugins: dict[str, Plugin] = {}
    taken = _taken(config)
    for key, line in config.hotkeys().items():
        with _told_of(key, config):
            found.append(_hotkey(key, line, taken))
    for name, given in config.plugins().items():
        with _told_of(name, config):
            plugins[name] = _plugin(name, given)
            found.append(_plugin_action(plugins[name], given, taken))
    return OwnKeys(tuple(found), tuple(config.hotkeys().values()), plugins)


@contextmanager
def _told_of(key: str, config: Config) -> Iterator[None]:
    """Let errors within the block say where a key stands in the file."""
    try:
        yield
    except EngineError as error:
        error.at = config.at(key)
        raise


def _hotkey(key: str, line: str, taken: list[_Taken]) -> Action:
    meant = _key(key)
    if meant is None:
        raise EngineError(f"`{key}` in `hotkeys` is no key to press", help=_KEYS)
    _free(taken, meant, (), f"hotkeys.{key}")
    told = f"Runs `:{line}`, from the configuration."
    runs: dict[str, Any] = {"handler": "plugins.press", "given": (line,)}
    return Action(f"hotkey-{meant}", line, told, (meant,), Danger.LOOKS, TUI, **runs)


_Taken = tuple[str, tuple[str, ...], str]
"""A key, the screens on which it has a meaning (none: all), and what has it."""
_KEYS = "write one letter or sign, such as J, or f1 to f24, or ctrl+l"


def _key(text: str) -> str | None:
    """Return the key that a text names, k9s' way of writing `Ctrl-L` and `Shift-J` included; None for none that can be pressed."""
    made = re.sub(r"(?i)^ctrl[-+](?=.)", "ctrl+", text)
    if re.fullmatch(r"(?i)shift[-+][a-z]", text):
        made = text[-1].upper()
    elif made.startswith("ctrl+") or re.fullmatch(r"[fF]\d+", made):
        made = made.lower()
    return made if _KEY.fullmatch(made) and made not in _HIDDEN else None


def _taken(config: Config) -> list[_Taken]:
    """Return keys that have a meaning, the screens on which they have it, and what that is."""
    given = config.keymap()
    return [(key, one.screens, one.id) for one in ALL for key in given.get(one.id, list(one.keys))]


def _free(taken: list[_Taken], key: str, screens: tuple[str, ...], name: str) -> None:
    """Take a key for a name; raises EngineError where it has a meaning on one of these screens."""
    for other, places, owner in taken:
        if other == key and (not places or not screens or set(places) & set(screens)):
            way_out = "" if "." in owner else f", or free this one: `{owner} = []` in [keymap]"
            advice = f"choose another key{way_out}"
            raise EngineError(f"`{key}` of `{name}` is the key of `{owner}`", help=advice)
    taken.append((key, screens, name))


def _plugin(name: str, given: Mapping[str, Any]) -> Plugin:
    """Return a plugin command as it is configured; raises EngineError."""
    if not given["command"] or "$" in given["command"]:
        text = f"`command` of `plugins.{name}` is the name of one program"
        raise EngineError(text, help="variables stand in `args`")
    args = tuple(tuple(one) if isinstance(one, list) else one for one in given["args"])
    for word in _words(args, name):
        for variable in _VARIABLE.findall(word):
            if variable not in (*VARIABLES, "$"):
                text = f"`plugins.{name}` has no `${variable}` to give"
                raise EngineError(text, help=_meant(variable))
    told = {one: given[one] for one in ("description", "confirm", "background", "dangerous")}
    return Plugin(name, given["command"], args, **told)


def _meant(variable: str) -> str:
    known = [f"${one}" for one in VARIABLES]
    return suggestion(f"${variable}", known, f"there are {', '.join(known)}; $$ is a dollar sign")


def _plugin_action(plugin: Plugin, given: Mapping[str, Any], taken: list[_Taken]) -> Action:
    name = plugin.name
    key = _key(given["key"])
    if key is None:
        raise EngineError(f"`{given['key']}` is no key to press for `plugins.{name}`", help=_KEYS)
    screens = _scopes(given["scopes"], name)
    _free(taken, key, screens, f"plugins.{name}")
    return Action(
        plugin_id(name),
        plugin.description or name,
        f"Runs `{plugin.template}`, from the configuration.",
        (key,),
        Danger.CHANGES if plugin.dangerous else Danger.LOOKS,
        TUI,
        screens=screens,
        needs_row=plugin.needs_row,
        bulk=plugin.needs_row,
        handler="plugins.run",
        given=(name,),
    )


def plugin_id(name: str) -> str:
    """Return the id of the action that runs a plugin command."""
    return f"plugin-{name}"


def _words(args: Sequence[object], name: str) -> list[str]:
    """Return all arguments; raises EngineError for what is no text."""
    words = [word for one in args for word in (one if isinstance(one, tuple) else (one,))]
    if not all(isinstance(word, str) for word in words):
        raise EngineError(f"`args` of `plugins.{name}` are texts, or lists of texts")
    return [str(word) for word in words]


def _scopes(words: Sequence[object], name: str) -> tuple[str, ...]:
    """Return the screens that scopes name, none for every one; raises EngineError for one that there is not."""
    found = []
    for word in map(str, words):
        listing = listing_named(word.lower())
        if word != "all" and word not in SCREENS and listing is None:
            text = f"`{word}` in `scopes` of `plugins.{name}` is no screen"
            raise EngineError(text, help=f"there are all, {', '.join(SCREENS)}")
        found.append(listing.noun if listing is not None else word)
    return () if "all" in found else tuple(found)


def values_of(row: Row | None, *, context: str, user: str) -> dict[str, str]:
    """Return what variables stand for with a row; what is not there is empty."""
    found = {"CONTEXT": context, "USER": user}
    if row is not None:
        found |= {name: row.text(name.lower()) for name in OF_ROWS}
        found["KIND"] = found["KIND"] or str(row.object.get("kind", ""))
    return found


def argv_of(plugin: Plugin, values: Mapping[str, str]) -> list[str]:
    """Return program and arguments; raises EngineError where a value is not there or is not one plain word."""
    made = [plugin.command]
    for one in plugin.args:
        if isinstance(one, str):
            made.append(_filled(one, values, plugin))
        elif all(
            values.get(name) for word in one for name in _VARIABLE.findall(word) if name != "$"
        ):
            made += [_filled(word, values, plugin) for word in one]
    return made


def _filled(word: str, values: Mapping[str, str], plugin: Plugin) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name == "$":
            return "$"
        text, so = values.get(name, ""), f"so `{plugin.name}` was not run"
        if not text:
            advice = "put what needs it into a list of its own within `args`"
            raise EngineError(f"`${name}` has no value here, {so}", help=advice)
        if not _PLAIN.fullmatch(text):
            raise EngineError(f"`${name}` is `{text}`, which is no plain word, {so}")
        return text

    return _VARIABLE.sub(value, word)
