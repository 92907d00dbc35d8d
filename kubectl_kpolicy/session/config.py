"""The configuration file: where it is, what may stand in it, and mistakes with file, line and the nearest right name.

TOML in XDG's place or in `$KPOLICY_CONFIG`; environment variables follow the keys (`KPOLICY_TUI__THEME`). Contexts have tables
of their own, matched by wildcards, so that everything called `prod*` can be read-only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.errors import NOWHERE, DocumentError, EngineError, Location
from engine.record import record
from kubectl_kpolicy.output.misuse import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

THEMES: Final = (
    "dark",
    "light",
    "cvd-dark",
    "cvd-light",
    "catppuccin",
    "gruvbox",
    "nord",
    "high-contrast",
    "ansi",
)
"""The names of the console's colours; `cvd` are for eyes that do not tell red from green."""
_THERE_ARE: Final = f"there are {', '.join(THEMES)}"

SETTINGS: Final[dict[str, dict[str, tuple[type, Any, str]]]] = {
    "tui": {
        "theme": (str, "dark", f"colours: {', '.join(THEMES)}; cvd for colour-blind eyes"),
        "screen": (str, "violations", "the screen that opens first"),
        "detail": (int, 35, "the part of the width that details take beside a list, in percent"),
        "motion": (bool, True, "changed rows flash and ended ones fade; off, too, with TEXTUAL_ANIMATIONS=none"),
        "notices": (bool, True, "a line about decisions, ends and new critical failures"),
        "ascii": (bool, False, "plain ASCII instead of symbols, for fonts that lack them"),
    },
    "context": {
        "read_only": (bool, False, "no changes from the console until `:write`"),
        "production": (bool, False, "shows PROD in the header; such a context is read-only unless it says otherwise"),
        "favourites": (list, [], "namespaces that the digits 1 to 9 choose"),
        "color": (str, "", "colour of the header, by a name such as teal or as #112233, to tell contexts apart"),
        "journal": (str, "", "namespace/name of the ConfigMap that keeps codes of `random()` policies"),
    },
    "plugins": {
        "key": (str, "", "the key that runs the command, such as J, f5 or ctrl+l"),
        "command": (str, "", "the program, found on PATH; no shell comes between"),
        "args": (list, [], "its arguments, with $NAME, $NAMESPACE, $KIND, $POLICY, $RULE, $CONTEXT, $USER"),
        "scopes": (list, ["all"], "the screens on which it is offered"),
        "description": (str, "", "what help calls it"),
        "confirm": (bool, False, "show the command and ask before it runs"),
        "background": (bool, False, "run it behind the console, which tells how it ended"),
        "dangerous": (bool, True, "off in read-only mode; false for what changes nothing"),
    },
}  # fmt: skip
"""Keys by table: type, default and what they are for."""

NAMED: Final = ("context", "plugins")
"""Tables that hold tables with names of somebody's own."""
_OPEN: Final = {"aliases": str, "hotkeys": str, "views": str, "keymap": (str, list)}
PRODUCTION: Final = ("prod", "live")
"""What the name of a context holds when it is taken for production without a word in the configuration."""

TEMPLATE: Final = """\
# kpolicy.toml: see `kubectl kpolicy config view` for everything that can be set here.

[tui]
theme = "dark"
screen = "violations"

[context."prod*"]
production = true
favourites = ["payments", "search"]

[views]
mine = "violations: sev>=high ns=payments"

[aliases]
crit = "violations sev=critical"

[hotkeys]
# f5 = "violations sev=critical"

[keymap]
# request = ["r"]
"""


@record
class Config:
    """What was read: values by table, and the file they came from (empty: none)."""

    values: Mapping[str, Any]
    file: str = ""

    def tui(self, name: str) -> Any:
        """Return a setting of the console."""
        return self.values.get("tui", {}).get(name, SETTINGS["tui"][name][1])

    def context(self, context: str, name: str) -> Any:
        """Return a setting of a context: the first table whose name fits, else the default."""
        return self._said_of(context, name, SETTINGS["context"][name][1])

    def _said_of(self, context: str, name: str, default: Any) -> Any:
        from engine.lang import wildcard

        for pattern, table in self.values.get("context", {}).items():
            if name in table and wildcard.match(pattern, context):
                return table[name]
        return default

    def is_production(self, context: str) -> bool:
        """Tell whether a context is production, by its table or by its name."""
        said = self.context(context, "production")
        return bool(said) or any(word in context.lower() for word in PRODUCTION)

    def is_read_only(self, context: str) -> bool:
        """Tell whether the console starts read-only: where the table says so, else in production."""
        return bool(self._said_of(context, "read_only", self.is_production(context)))

    def views(self) -> dict[str, str]:
        """Return saved filters by name."""
        return dict(self.values.get("views", {}))

    def aliases(self) -> dict[str, str]:
        """Return words of the console's command line, each with the line that it stands for."""
        return dict(self.values.get("aliases", {}))

    def hotkeys(self) -> dict[str, str]:
        """Return keys, each with the line of the console's command line that it runs."""
        return dict(self.values.get("hotkeys", {}))

    def plugins(self) -> dict[str, dict[str, Any]]:
        """Return programs on keys by name, every setting with its value."""
        defaults = {key: default for key, (_, default, _) in SETTINGS["plugins"].items()}
        return {name: {**defaults, **one} for name, one in self.values.get("plugins", {}).items()}

    def at(self, key: str) -> Location:
        """Return the place of a key in the file."""
        if not self.file:
            return NOWHERE
        return Location(self.file, _line_of(_text_of(Path(self.file)), key))

    def keymap(self) -> dict[str, list[str]]:
        """Return keys by action id."""
        found = self.values.get("keymap", {})
        return {name: [keys] if isinstance(keys, str) else list(keys) for name, keys in found.items()}  # fmt: skip


def config_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the configuration is, or would be."""
    named = environment.get("KPOLICY_CONFIG")
    if named:
        return Path(named)
    base = environment.get("XDG_CONFIG_HOME") or f"{environment.get('HOME', '.')}/.config"
    return Path(base) / "kpolicy" / "kpolicy.toml"


def load_config(environment: Mapping[str, str] = os.environ) -> Config:
    """Return the configuration, environment variables on top; raises DocumentError with file and line."""
    path = config_path(environment)
    values: dict[str, Any] = {}
    if path.exists():
        values = _read(path)
    for name, value in environment.items():
        table, double, key = name.removeprefix("KPOLICY_").lower().partition("__")
        if name.startswith("KPOLICY_") and double and key in SETTINGS.get(table, {}):
            typed = _typed(name, value, SETTINGS[table][key][0])
            if key == "theme":
                theme_named(value)
            values[table] = {**values.get(table, {}), key: typed}
    return Config(values, str(path) if path.exists() else "")


def theme_named(word: str) -> str:
    """Return the name of a theme; raises EngineError with those there are for any other word."""
    if word not in THEMES:
        raise EngineError(f"there is no theme `{word}`", help=_THERE_ARE)
    return word


def _typed(name: str, value: str, kind: type) -> Any:
    """Return the value of an environment variable as what its key holds; raises EngineError."""
    if kind is bool:
        return value.lower() in ("1", "true", "yes")
    if kind is not int:
        return value
    if not value.isdecimal():
        raise EngineError(f"`{name}` is {_article(int)}, not `{value}`")
    return int(value)


def save_view(name: str, text: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Write a view into the configuration, in place of one of the same name; everything else stays as it is written.

    Raises DocumentError where the file could not be read afterwards, in which case it is left alone, EngineError where it
    cannot be written.
    """
    import tomllib

    path = config_path(environment)
    before = _text_of(path) if path.exists() else ""
    made = _with_view(before, name, text)
    try:
        good = tomllib.loads(made).get("views", {}).get(name) == text
    except tomllib.TOMLDecodeError:
        good = False
    if not good:
        raise DocumentError("the view cannot be put into the file", at=Location(str(path)), help=f"write it yourself: [views] {_quoted(name)} = {_quoted(text)}")  # fmt: skip
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made, "utf-8")
    except OSError as error:
        raise EngineError(f"cannot write `{path}`") from error
    return path


def _with_view(text: str, name: str, view: str) -> str:
    """Return a configuration with a line for a view in its table, which is made at the end where there is none."""
    line = f"{_quoted(name)} = {_quoted(view)}"
    lines = text.splitlines()
    heads = [number for number, one in enumerate(lines) if one.strip().replace(" ", "") == "[views]"]  # fmt: skip
    if not heads:
        return "\n".join([*lines, *([""] if lines else []), "[views]", line]) + "\n"
    number = heads[0] + 1
    while number < len(lines) and not lines[number].lstrip().startswith("["):
        key = lines[number].partition("=")[0].strip().strip("\"'")
        if key == name and "=" in lines[number]:
            return "\n".join([*lines[:number], line, *lines[number + 1 :]]) + "\n"
        number += 1
    return "\n".join([*lines[: heads[0] + 1], line, *lines[heads[0] + 1 :]]) + "\n"


def _quoted(text: str) -> str:
    """Return a text as TOML writes it, which reads JSON's way of quoting."""
    import json

    return json.dumps(text, ensure_ascii=False)


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError("not encoded as UTF-8", at=Location(str(path))) from error


def _read(path: Path) -> dict[str, Any]:
    import tomllib

    text = _text_of(path)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DocumentError(str(error)[:1].lower() + str(error)[1:], at=Location(str(path))) from error  # fmt: skip
    for message, key, advice in problems(values):
        raise DocumentError(message, at=Location(str(path), _line_of(text, key)), help=advice)
    return values


def problems(values: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what is wrong: a sentence, the key, and advice."""
    found: list[tuple[str, str, str]] = []
    for table, content in values.items():
        if table not in SETTINGS and table not in _OPEN:
            found.append(
                (f"unknown table `{table}`", table, suggestion(table, [*SETTINGS, *_OPEN]))
            )
        elif not isinstance(content, dict):
            found.append((f"`{table}` is a table", table, f"write it as [{table}]"))
        elif table in NAMED:
            for name, one in content.items():
                found += _in_table(one, SETTINGS[table], f"{table}.{name}")
        elif table in SETTINGS:
            found += _in_table(content, SETTINGS[table], table)
        else:
            found += [(f"`{key}` in `{table}` has the wrong type", key, "") for key, value in content.items() if not isinstance(value, _OPEN[table])]  # type: ignore[arg-type] # a type or several  # fmt: skip
    return found


def _in_table(content: Any, known: Mapping[str, tuple[type, Any, str]], table: str) -> list[tuple[str, str, str]]:  # fmt: skip
    if not isinstance(content, dict):
        return [(f"`{table}` is a table", table.rpartition(".")[2], f"write it as [{table}]")]
    found: list[tuple[str, str, str]] = []
    for key, value in content.items():
        if key not in known:
            found.append((f"unknown key `{key}` in `{table}`", key, suggestion(key, list(known))))
        elif not isinstance(value, known[key][0]) or (isinstance(value, bool) and known[key][0] is not bool):  # fmt: skip
            found.append((f"`{key}` in `{table}` is {_article(known[key][0])}", key, known[key][2]))
        elif (table, key) == ("tui", "theme") and value not in THEMES:
            found.append((f"there is no theme `{value}`", key, _THERE_ARE))
    return found


def _article(kind: type) -> str:
    names = {str: "a text", bool: "true or false", int: "a whole number", list: "a list of texts"}
    return names[kind]


def _line_of(text: str, key: str) -> int:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().lstrip('["').startswith(key) or f".{key}" in line or f'"{key}"' in line:
            return number
    return 0
