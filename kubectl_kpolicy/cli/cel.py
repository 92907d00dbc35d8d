"""`kubectl kpolicy cel`: try CEL expressions with the functions of policies.

Verbs and flags as of `jp`: `query` evaluates on bindings, `parse` prints an expression's tree, `function` prints signatures.
Standard output carries results only; `-o typed` prints one line of typed JSON for each expression, errors included.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .flags import Arguments, Flags, Verbs
from .jp import bytes_of, indented, refuse, text_of, unknown_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


def add_arguments(flags: Flags) -> None:
    """Add the command's verbs."""
    example = "cel query -i bindings.yaml 'object.spec.containers.all(c, has(c.resources))'"
    verbs = Verbs(flags, example, title="verbs")
    query = verbs.add("query", "evaluate expressions on bindings", _query, cluster=False, example=example)  # fmt: skip
    _add_expressions(query)
    query.text("-i --input", "FILE", "bindings by name, YAML or JSON, plain or typed; none by default")  # fmt: skip
    query.choice("-o --output", ("json", "typed"), "plain JSON under a line `# expression`, or typed JSON, one line for each expression")  # fmt: skip
    parse = verbs.add("parse", "print the syntax tree of expressions", _parse, cluster=False, example="cel parse 'object.metadata.name == \"web\"'")  # fmt: skip
    _add_expressions(parse)
    function = verbs.add("function", "print the signatures of functions", _functions, cluster=False, example="cel function indexOf")  # fmt: skip
    function.add("names", "which functions (all by default)", nargs="*", metavar="NAME")


def _add_expressions(flags: Flags) -> None:
    flags.many("-q --query", "FILE", "read expressions from a file, one a line; `-` is standard input (repeatable)")  # fmt: skip
    flags.add("expressions", nargs="*", metavar="EXPRESSION")


def _query(args: Arguments) -> int:
    """Evaluate; 1 where an expression is wrong, 2 where there is none or standard input is asked for twice."""
    if args.input == "-" and "-" in args.query:
        return refuse("standard input cannot be both the bindings and the expressions", "give one of them as a file", code=2)  # fmt: skip
    if not (expressions := _expressions(args)):
        return 2
    bindings = _bindings(args.input)
    if args.output == "json":
        return _each(expressions, lambda expression: _plain(_evaluate(expression, bindings)))
    for expression in expressions:
        print(_typed(expression, bindings))
    return 0


def _parse(args: Arguments) -> int:
    return _each(expressions, _tree) if (expressions := _expressions(args)) else 2


def _expressions(args: Arguments) -> list[str]:
    """Return the expressions of files and words; where there is none say so, and return nothing."""
    found = [*_lines(args.query), *args.expressions]
    if any(map(str.strip, found)):
        return found
    refuse("no expression given", "give one as an argument or a file with `-q FILE`")
    return []


def _each(expressions: Iterable[str], answer: Callable[[str], str]) -> int:
    """Print an answer below each expression; point at the place of the first that has none, and return 1."""
    from engine.errors import EngineError
    from engine.lang.cel.errors import pointed
    from kubectl_kpolicy.output.diagnostics import report, visible

    for expression in filter(str.strip, expressions):
        try:
            print(f"# {expression}\n{answer(expression)}")
        except EngineError as error:
            sys.stdout.flush()
            report(error)
            place = pointed(expression, getattr(error, "position", -1))
            if place:
                print(visible(place), file=sys.stderr)
            return 1
    return 0


def _evaluate(expression: str, bindings: dict[str, Any]) -> Any:
    from datetime import UTC, datetime

    from engine.lang import cel

    program = cel.compile(expression, qualified=[name for name in bindings if "." in name])
    return program(bindings, cel.CelEnv(now=datetime.now(UTC), seed=_seed))


def _seed() -> bytes:
    from secrets import token_bytes

    return token_bytes(16)


def _typed(expression: str, bindings: dict[str, Any]) -> str:
    """Return the line of one expression: its typed value, or its error."""
    import json

    from engine.errors import EngineError
    from engine.lang.cel.typed import encode

    try:
        shown: dict[str, Any] = encode(_evaluate(expression, bindings))
    except EngineError as error:
        shown = {"error": error.message}
    return json.dumps(shown)


def _plain(value: Any) -> str:
    """Return a value as JSON; types that JSON does not have are written as texts, or typed where they have none."""
    from engine.lang.cel import CelEnv, CelError
    from engine.lang.cel.functions.encodings import plain
    from engine.lang.cel.typed import encode
    from engine.lang.gotext import compact_json

    try:
        shown = plain(CelEnv(), value)
    except CelError:
        shown = encode(value)
    return indented(compact_json(shown))


def _bindings(path: str) -> dict[str, Any]:
    """Return the bindings of a file. Raises EngineError where it holds no mapping."""
    if not path:
        return {}
    from engine.errors import DocumentError, Location
    from engine.lang.cel.typed import decode

    given = _document(bytes_of(path), path)
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise DocumentError("bindings must be a mapping of names to values", at=Location(path))
    return {name: decode(value) for name, value in given.items()}


def _document(text: bytes, path: str) -> Any:
    """Return the value of JSON, whose `1.0` stays a double, else of YAML as Kubernetes reads it."""
    from engine.errors import DocumentError
    from engine.lang import json, yaml

    try:
        return json.load(text, file=path)
    except DocumentError:
        return yaml.load(text, file=path)


def _tree(expression: str) -> str:
    from engine.lang.cel.outline import outline

    return f"{outline(expression)}\n"


def _functions(args: Arguments) -> int:
    from engine.lang.cel import signatures
    from engine.lang.cel.macros import MACROS

    known: dict[str, list[tuple[str, str]]] = {}
    for library, signature in (*(("macro", text) for text in MACROS), *signatures()):
        full = signature.partition("(")[0]
        for name in {full, full.rpartition(".")[2]}:
            known.setdefault(name, []).append((library, signature))
    if code := unknown_function(args.names, known, "cel function"):
        return code
    for name in args.names or ("",):
        listed = known[name] if name else [*(("macro", text) for text in MACROS), *signatures()]
        print("\n".join(f"{library:<12}{signature}" for library, signature in listed))
    return 0


def _lines(paths: Sequence[str]) -> Iterator[str]:
    """Yield the lines of files; an empty one stays, so that typed results stand on the line of their expression."""
    for path in paths:
        yield from text_of(path).removesuffix("\n").split("\n")
