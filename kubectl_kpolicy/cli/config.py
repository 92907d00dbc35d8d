"""`kubectl kpolicy config`: where the configuration is, what is in force, whether the file is right, and a first one."""

from __future__ import annotations

import sys

from .flags import Arguments, Flags, Verbs


def add_arguments(flags: Flags) -> None:
    """Add the command's verbs."""
    verbs = Verbs(flags, "config view -o json", usual="view")
    view = verbs.add("view", "print every setting with its value and meaning", _view, cluster=False)
    view.output("table", "json", "yaml")
    verbs.add("locate", "print the path of the file", _locate, cluster=False)
    verbs.add("validate", "validate the file; exit with 1 when it is wrong", _validate, cluster=False)  # fmt: skip
    verbs.add("init", "create the file, unless there is one", _init, cluster=False)


def _view(args: Arguments) -> int:
    from kubectl_kpolicy.output.structured import write_object
    from kubectl_kpolicy.output.table import Column, Table
    from kubectl_kpolicy.session.config import NAMED, SETTINGS, load_config

    config = load_config()
    if args.output != "table":
        write_object(sys.stdout, {"file": config.file, **config.values}, args.output)
        return 0
    table = Table([Column("KEY"), Column("VALUE"), Column("WHAT")])
    for table_name, keys in SETTINGS.items():
        for key, (_, default, text) in keys.items():
            given = config.values.get(table_name, {})
            value = given.get(key, default) if table_name == "tui" else default
            place = f"{table_name}.NAME" if table_name in NAMED else table_name
            table.add(f"{place}.{key}", str(value), text)
    plugins = {name: f"{one['key']}: {one['command']}" for name, one in config.plugins().items()}
    keymap = {name: ", ".join(keys_of) for name, keys_of in config.keymap().items()}
    for kind, told, text in (
        ("views", config.views(), "saved view"),
        ("aliases", config.aliases(), "word of the console's command line"),
        ("hotkeys", config.hotkeys(), "line that a key runs in the console"),
        ("plugins", plugins, "program that a key runs from the console"),
        ("keymap", keymap, "keys of an action"),
    ):
        for name, value in told.items():
            table.add(f"{kind}.{name}", value, text)
    sys.stdout.write(table.text())
    return 0


def _locate(_args: Arguments) -> int:
    from kubectl_kpolicy.session.config import config_path

    print(config_path())
    return 0


def _validate(_args: Arguments) -> int:
    """Check file, saved views and keys; raises EngineError for the first mistake."""
    from engine.errors import EngineError
    from kubectl_kpolicy.actions.catalog import registry
    from kubectl_kpolicy.actions.plugins import own_keys
    from kubectl_kpolicy.actions.prompt import understand
    from kubectl_kpolicy.actions.screens import LISTINGS
    from kubectl_kpolicy.filter import compile_filter
    from kubectl_kpolicy.session.config import load_config

    config = load_config()
    for name, text in config.views().items():
        noun, _, where = text.partition(":")
        if noun.strip() not in LISTINGS:
            raise EngineError(f"view `{name}` is for no screen", help='write it as "violations: sev>=high"')  # fmt: skip
        compile_filter(where, LISTINGS[noun.strip()])
    found = registry(config.keymap())
    unknown = [name for name in config.keymap() if found.get(name) is None]
    if unknown:
        raise EngineError(f"keymap: there is no action `{unknown[0]}`", help="`kubectl kpolicy spec -o json` lists them")  # fmt: skip
    if clashes := found.clashes():
        raise EngineError(f"keymap: {clashes[0]}")
    own = own_keys(config)
    for key, line in config.hotkeys().items():
        if problem := understand(line, config.aliases(), own.plugins).problem:
            raise EngineError(f"hotkey `{key}`: {problem}", at=config.at(key))
    print(f"{config.file or 'no file: defaults'}: ok")
    return 0


def _init(_args: Arguments) -> int:
    from engine.errors import EngineError
    from kubectl_kpolicy.session.config import TEMPLATE, config_path

    path = config_path()
    if path.exists():
        raise EngineError(f"`{path}` exists already", help="edit it; `kubectl kpolicy config validate` checks it")  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEMPLATE)
    print(path)
    return 0
