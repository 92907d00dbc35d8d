"""The pages of the site that are made: commands and keys from their declarations, kinds from the schemas that a cluster gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controllers.manifests.crds import all_kinds, definition
from kubectl_kpolicy.actions.catalog import ALL
from kubectl_kpolicy.actions.prompt import COMMAND_WORDS
from kubectl_kpolicy.actions.screens import SCREENS
from kubectl_kpolicy.cli.spec import specification
from kubectl_kpolicy.output.diagnostics import ExitCode
from kubectl_kpolicy.session.config import NAMED, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kubectl_kpolicy.actions.registry import Action

GLOBAL = ("--color", "--verbose", "--quiet", "--non-interactive", "--help")


def commands() -> str:
    """Return the page of all commands, verbs and flags."""
    told = specification()
    parts = [
        "# Commands",
        "",
        "Made from the declarations that `kubectl kpolicy COMMAND --help` prints; `kubectl kpolicy spec` gives the same as data.",
        f"Every command takes {', '.join(f'`{one}`' for one in GLOBAL)}.",
        "",
        "## Exit codes",
        "",
        *_table(("code", "name"), ((str(int(one)), one.name.lower()) for one in ExitCode)),
    ]
    for name, command in told["commands"].items():
        parts += _command(f"kubectl kpolicy {name}", command, 2)
    return "\n".join(parts) + "\n"


def _command(name: str, told: dict[str, Any], level: int) -> Iterator[str]:
    yield from (
        "",
        f"{'#' * level} {name.removeprefix('kubectl kpolicy ')}",
        "",
        _text(told["help"]),
        "",
    )
    if example := told.get("example"):
        yield from ("```text", example.removeprefix("example: "), "```", "")
    rows = [(f"`{word['name']}`", word["help"]) for word in told.get("arguments", ())]
    rows += [
        (_flag(flag, one), _about(one)) for flag, one in told["flags"].items() if flag not in GLOBAL
    ]
    if rows:
        yield from _table(("argument or flag", "what it says"), rows)
    for verb, one in told.get("verbs", {}).items():
        yield from _command(f"{name} {verb}", one, min(level + 1, 4))


def _flag(name: str, told: dict[str, Any]) -> str:
    names = [*([told["short"]] if "short" in told else []), name, *told.get("aliases", ())]
    return " ".join(f"`{one}`" for one in names)


def _about(told: dict[str, Any]) -> str:
    text = told["help"]
    if "choices" in told:
        text += f" ({', '.join(told['choices'])})"
    if told.get("default") not in (None, "", False) and "(" not in text:
        text += f" ({told['default']})"
    return text


def console() -> str:
    """Return the page of the console: screens, keys by screen, words of the command line, settings."""
    parts = [
        "# Keys and settings of the console",
        "",
        "Made from the declarations that `?` shows in the console and `kubectl kpolicy config view` prints.",
        "",
        "## Screens",
        "",
        *_table(
            ("screen", "words after `:`", "letter of `ctrl+o`"),
            (
                (
                    name,
                    _typed((name, *(one.listing.aliases if one.listing else ()))),
                    f"`{one.letter}`",
                )
                for name, one in SCREENS.items()
            ),
        ),
        "",
        "## Words after `:`",
        "",
        *_table(
            ("word", "what follows or happens"),
            ((f"`{one}`", text) for one, text in COMMAND_WORDS.items()),
        ),
        "",
        "## Keys of every screen",
        "",
        *_keys(one for one in ALL if not one.screens),
    ]
    for name in SCREENS:
        if own := [one for one in ALL if name in one.screens]:
            parts += ["", f"## Keys of {name}", "", *_keys(own)]
    rows = (
        (f"`{table}.NAME.{key}`" if table in NAMED else f"`{table}.{key}`", _default(default), text)
        for table, keys in SETTINGS.items()
        for key, (_, default, text) in keys.items()
    )
    return (
        "\n".join(
            [*parts, "", "## Settings", "", *_table(("setting", "default", "what it is for"), rows)]
        )
        + "\n"
    )


def _keys(actions: Iterable[Action]) -> list[str]:
    return _table(
        ("key", "id in `[keymap]`", "what it does"),
        ((_typed(one.keys), f"`{one.id}`", one.help) for one in actions),
    )


def _typed(words: Iterable[str]) -> str:
    return " ".join(f"`{one}`" for one in words)


def _default(value: object) -> str:
    return f"`{str(value).lower()}`" if value not in ("", []) else "none"


def kinds() -> str:
    """Return the page of all kinds that are installed, with each field of the version that is stored."""
    parts = [
        "# Kinds",
        "",
        "Made from the schemas that `kubectl kpolicy install crds` prints; `kubectl explain KIND.spec` shows the same in a cluster.",
    ]
    for kind in all_kinds():
        spec = definition(kind)["spec"]
        stored = next(one for one in spec["versions"] if one["storage"])
        schema = stored["schema"]["openAPIV3Schema"]
        versions = ", ".join(f"`{spec['group']}/{one['name']}`" for one in spec["versions"])
        parts += [
            "",
            f"## {kind.kind} ({spec['group']})",
            "",
            _text(schema["description"]),
            "",
            f"{spec['scope']}, short name `{spec['names']['shortNames'][0]}`; {versions}.",
            "",
        ]
        rows = [
            row
            for name in ("spec", "status")
            if name in schema["properties"]
            for row in _fields(name, schema["properties"][name], name in schema.get("required", ()))
        ]
        parts += _table(("field", "type", "what it means"), rows)
    return "\n".join(parts) + "\n"


def _fields(path: str, schema: dict[str, Any], required: bool) -> Iterator[tuple[str, str, str]]:
    yield f"`{path}`", _type(schema, required), schema.get("description", "")
    inner, below = schema, path
    while "items" in inner or isinstance(inner.get("additionalProperties"), dict):
        is_list = "items" in inner
        inner, below = (
            inner["items" if is_list else "additionalProperties"],
            f"{below}[]" if is_list else f"{below}.*",
        )
    needed = inner.get("required", ())
    for name, field in inner.get("properties", {}).items():
        yield from _fields(f"{below}.{name}", field, name in needed)


def _type(schema: dict[str, Any], required: bool) -> str:
    kind = schema.get("type", "anything")
    if kind == "array":
        kind = f"list of {schema['items'].get('type', 'anything')}"
    if "enum" in schema:
        kind = ", ".join(f"`{one}`" for one in schema["enum"])
    return f"{kind}, required" if required else kind


def _table(head: tuple[str, ...], rows: Any) -> list[str]:
    made = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*made, *(f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows)]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;").replace("%%", "%")


def _text(text: str) -> str:
    text = text.replace("<", "&lt;")
    return f"{text[:1].upper()}{text[1:]}".removesuffix(".") + "."
