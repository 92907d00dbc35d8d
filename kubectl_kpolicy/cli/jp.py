"""`kubectl kpolicy jp`: try JMESPath expressions with the functions of policies (row K-10).

Upstream's verbs and flags: `query` evaluates on a YAML or JSON document, `parse` prints an expression's tree, `function`
prints signatures. Standard output carries results only, each under a line `# expression`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .flags import Arguments, Flags, Verbs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_INDENT = "  "


def add_arguments(flags: Flags) -> None:
    """Add the command's verbs."""
    example = "jp query -i pod.yaml 'spec.containers[].image'"
    verbs = Verbs(flags, example, title="verbs")
    query = verbs.add("query", "evaluate expressions on a document", _query, cluster=False, example=example)  # fmt: skip
    query.text("-i --input", "FILE", "the document, YAML or JSON; `-` or nothing is standard input")
    query.many("-q --query", "FILE", "read an expression from a file (repeatable)")
    query.switch("-c --compact", "print results on one line")
    query.switch("-u --unquoted", "print strings without quotes")
    query.add("expressions", nargs="*", metavar="EXPRESSION")
    parse = verbs.add("parse", "print the syntax tree of expressions", _parse, cluster=False, example="jp parse 'request.object.metadata.name'")  # fmt: skip
    parse.many("-f --file", "FILE", "read an expression from a file (repeatable)")
    parse.add("expressions", nargs="*", metavar="EXPRESSION")
    function = verbs.add("function", "print the signatures of functions", _functions, cluster=False, example="jp function truncate")  # fmt: skip
    function.add("names", "which functions (all by default)", nargs="*", metavar="NAME")


def _query(args: Arguments) -> int:
    from datetime import UTC, datetime
    from os import urandom

    from engine.lang import gotext, jmes, yaml
    from engine.lang.chance import Chance
    from engine.lang.jmes.values import Env, held

    named = args.query or args.expressions
    if args.input in ("", "-") and (not named or "-" in args.query):
        return refuse("standard input cannot be both the document and the expression",
            "give the document with `-i FILE` or the expression as an argument", code=2)  # fmt: skip
    expressions = [*_from_files(args.query), *args.expressions]
    document = held(yaml.load(text_of(args.input or "-"), file=args.input))
    for expression in expressions or [text_of("-").strip()]:
        query = jmes.compile(expression)
        now, chance = datetime.now(UTC), Chance(urandom(32))
        result = query(document, Env(now=now, chance=chance, is_external_host=_is_external))
        shown = gotext.compact_json(result)
        if args.unquoted and isinstance(result, str):
            shown = result
        elif not args.compact:
            shown = indented(shown)
        print(f"# {expression}\n{shown}")
    return 0


def _parse(args: Arguments) -> int:
    from engine.lang.jmes.outline import outline

    for expression in [*_from_files(args.file), *args.expressions] or [text_of("-").strip()]:
        tree = outline(expression)
        print(f"# {expression}\n{tree}\n")
    return 0


def _functions(args: Arguments) -> int:
    from engine.lang.jmes import functions

    if code := unknown_function(args.names, functions.table(), "jp function"):
        return code
    for name in args.names or sorted(functions.table()):
        function = functions.table()[name]
        print(f"Name: {name}\n  Signature: {function.signature}\n  Note:      {function.note}\n")
    return 0


def refuse(message: str, advice: str, *, code: int = 1) -> int:
    """Print what is wrong and what to do, and return the exit code."""
    print(f"error: {message}\nhelp: {advice}", file=sys.stderr)
    return code


def unknown_function(names: Sequence[str], known: Mapping[str, object], command: str) -> int:
    """Refuse the first name that no function has, 0 where all are known; `command` lists them."""
    wrong = next((name for name in names if name not in known), None)
    if wrong is None:
        return 0
    from kubectl_kpolicy.output.misuse import suggestion

    advice = suggestion(wrong, known, f"`{command}` lists them all")
    return refuse(f"unknown function `{wrong}`", advice)


def indented(text: str) -> str:
    """Return compact JSON over several lines, as Go's MarshalIndent writes it with two spaces."""
    built: list[str] = []
    depth = 0
    for piece, following in _pieces(text):
        if piece in ("}", "]"):
            depth -= 1
            built.append("\n" + _INDENT * depth)
        built.append(": " if piece == ":" else piece)
        if piece in ("{", "["):
            depth += 1
        if piece == "," or (piece in ("{", "[") and following not in ("}", "]")):
            built.append("\n" + _INDENT * depth)
    return "".join(built)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the tokens of compact JSON, each with the character after it; `{}` and `[]` are one token."""
    import re

    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|\{\}|\[\]|[{}\[\]:,]|[^"{}\[\]:,]+', text):
        yield found.group(), text[found.end() : found.end() + 1]


def _from_files(paths: Sequence[str]) -> list[str]:
    return [text_of(path).strip() for path in paths]


def text_of(path: str) -> str:
    """Return the text of a file, or of standard input for `-`; raise DocumentError where it is not UTF-8."""
    from engine.lang.yaml.read import decode

    return decode(bytes_of(path), path)


def bytes_of(path: str) -> bytes:
    """Return what is in a file, or in standard input for `-`."""
    return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()


def _is_external(host: str) -> bool:
    """Look a host name up, and say whether it leads outside; raises EvaluationError."""
    import socket

    from engine.errors import EvaluationError
    from engine.lang.jmes.formats import is_external

    try:
        found = socket.getaddrinfo(host, None)
    except OSError as error:
        raise EvaluationError(f"lookup {host}: no such host") from error
    return is_external(str(entry[4][0]) for entry in found)
