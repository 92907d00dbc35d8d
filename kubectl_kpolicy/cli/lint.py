"""`kubectl kpolicy lint`: mistakes in policies of every kind, exceptions and cleanup policies, before a cluster sees them.

Everything that is wrong is printed with file and line, not only the first; documents of other kinds are passed over. The
checks are the engine's, so an error here is a refusal by the webhook.

`--fix` writes what has one meaning, in the text of the file, so that comments and order stay as they are: fields and variables that
are misspelt beyond doubt, and actions in lower case. Every change is tried on a copy and kept only where the finding is gone and no
other one came, so a file is never worse than before.
"""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.errors import DocumentError, Location, PolicyError
from engine.record import record, replace
from kubectl_kpolicy.output.findings import Finding, github_lines, sarif_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from engine.lang.yaml import Document

    from .flags import Arguments, Flags

    Find = Callable[[str], list["Mistake"] | None]

_STEP = re.compile(r"[^.\[\]]+|\[[0-9]+\]")


@record
class Line:
    """One finding as it is printed: where, how grave, about which object, what, and what to do."""

    file: str
    line: int
    severity: str
    object: str
    path: str
    message: str
    help: str = ""
    fix: tuple[str, str] | None = None

    @property
    def place(self) -> str:
        """`file:line`, or the file alone where no line is known."""
        return f"{self.file}:{self.line}" if self.line else self.file


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.example("kubectl kpolicy lint policies/ exceptions.yaml")
    flags.add("paths", "files, folders, git repositories or URLs; - reads standard input", nargs="+", metavar="PATH")  # fmt: skip
    flags.output("table", "json", "yaml", "sarif", "github")
    flags.switch("--fix", "fix unambiguous mistakes in the files: misspelt fields and variables, actions in lower case")  # fmt: skip
    flags.switch("--allow-empty", "accept files with nothing to check, for use in hooks")
    flags.choice("--validate", ("strict", "warn", "ignore"), "whether unknown or repeated fields are errors, warnings or ignored")  # fmt: skip


def run(args: Arguments) -> int:
    """Check every document and print what was found; return 1 where there is an error, 2 where there is nothing to check."""
    from kubectl_kpolicy.output.diagnostics import ExitCode

    found: list[Line] = []
    checked = 0
    mended = _mend(args.paths, args.validate) if args.fix else 0
    for path in args.paths:
        count, lines = _check_path(path, args.validate)
        checked += count
        found += lines
    errors = sum(line.severity == "error" for line in found)
    if not checked and not errors and not args.allow_empty:
        print("error: no policies, exceptions or cleanup policies found", file=sys.stderr)
        print("help: name files or folders that hold some", file=sys.stderr)
        return ExitCode.USAGE
    _write(found, args)
    if not args.quiet:
        gone = f"{mended} mended, " if args.fix else ""
        counts = f"{checked} checked, {errors} errors, {len(found) - errors} warnings"
        print(gone + counts, file=sys.stderr)
    return ExitCode.FAILED if errors else ExitCode.DONE


def _mend(paths: Sequence[str], mode: str) -> int:
    """Mend what has one meaning in the files of paths on this machine; return how many findings are gone."""
    from kubectl_kpolicy.session.sources import ADDRESSES, STDIN, files_at

    local = [path for path in paths if path != STDIN and not path.startswith(ADDRESSES)]
    find = partial(mistakes_in, mode=mode)
    return sum(fix_file(file, find) for path in local for file in files_at(path))


def mistakes_in(text: str, mode: str = "strict") -> list[Mistake] | None:
    """Return the findings about the documents of a text, None where it cannot be read."""
    from engine.lang import yaml
    from kubectl_kpolicy.session.sources import expand

    try:
        documents = list(expand(yaml.load_all(text, strict=mode == "strict")))
    except DocumentError:
        return None
    ours = [one for one in documents if _is_ours(one.value)]
    found = [line for one in ours for line in check_document(one, mode)]
    return [Mistake(one.line, (one.object, one.path, one.message), one.fix) for one in found]


def _check_path(path: str, mode: str) -> tuple[int, list[Line]]:
    """Return how many documents a path has for us, and the findings about them."""
    from kubectl_kpolicy.session.sources import read_documents

    local = path
    try:
        local = _brought(path)
        documents = read_documents([local], strict=mode == "strict")
    except DocumentError as error:
        at = error.at
        file = (at.file or path).replace(local, path)
        return 0, [Line(file, at.line, "error", "", "", error.message, error.help)]
    ours = [item for item in documents if _is_ours(item.value)]
    found = [line for item in ours for line in check_document(item, mode)]
    if local == path:
        return len(ours), found
    return len(ours), [replace(line, file=line.file.replace(local, path)) for line in found]


def _brought(path: str) -> str:
    """Return where a path lies on this machine, fetched first where it is an address; raises DocumentError."""
    from kubectl_kpolicy.session.sources import ADDRESSES

    if not path.startswith(ADDRESSES):
        return path
    from kubectl_kpolicy.apply.remote import localised

    return localised([path])[0]


def _is_ours(value: Any) -> bool:
    from engine.model.kinds import CLASSIC_GROUP, kind_of

    if not isinstance(value, dict):
        return False
    group, kind = str(value.get("apiVersion", "")).partition("/")[0], value.get("kind")
    is_exception = group == CLASSIC_GROUP and kind == "PolicyException"
    return is_exception or kind_of(value) is not None or kind in _cel_parsers(group)


def _cel_parsers(group: str) -> Mapping[str, Any]:
    """Return what reads exceptions and native policies of a group, by kind; loaded with the first of them."""
    from engine.model.kinds import CEL_GROUP

    if group not in (CEL_GROUP, "admissionregistration.k8s.io"):
        return {}
    from engine.parse.celpolicies import PARSERS

    return PARSERS[group]


def check_document(document: Document, mode: str = "strict") -> Iterator[Line]:
    """Yield the findings about one policy, exception or cleanup policy; `mode` says what an unknown field is."""
    from engine.parse import Fault, problems

    doc = document.value
    broken = False
    for problem in problems(doc):
        is_unknown = problem.fault is Fault.UNKNOWN
        broken = broken or not is_unknown
        if is_unknown and mode == "ignore":
            continue
        severity = "warning" if is_unknown and mode == "warn" else "error"
        advice = f"did you mean `{problem.nearest}`?" if problem.nearest else ""
        fix = (str(problem.path[-1]), problem.nearest) if problem.nearest else None
        yield _line(document, severity, problem.path, problem.message, advice, fix)
    if broken:
        return
    try:
        findings = _lint(doc, Location(document.file))
    except PolicyError as error:
        yield _line(document, "error", (), error.message, error.help)
        return
    for item in findings:
        yield _line(document, item.severity, _steps(item.path), item.message, item.help, item.fix)


def _lint(doc: dict[str, Any], at: Any) -> Iterable[Any]:
    from engine import lint, parse
    from engine.model.kinds import kind_of, loaded

    if read := _cel_parsers(str(doc["apiVersion"]).partition("/")[0]).get(doc["kind"]):
        return _lint_cel(read(doc, at=at, strict=False))
    if row := kind_of(doc):
        found: Iterable[Any] = loaded(row.family.linter)(
            loaded(row.family.parser)(doc, at=at, strict=False)
        )
        return found
    return lint.lint_exception(parse.parse_exception(doc, at=at, strict=False))


def _lint_cel(value: Any) -> Iterable[Any]:
    from engine import lint
    from engine.model import Policy
    from engine.model.policy import Binding

    if isinstance(value, Policy):
        return lint.lint_cel_policy(value)
    return (
        lint.lint_binding(value) if isinstance(value, Binding) else lint.lint_cel_exception(value)
    )


def _steps(path: str) -> tuple[str | int, ...]:
    """Return the steps of a path such as `spec.rules[0].match`."""
    return tuple(int(step[1:-1]) if step.startswith("[") else step for step in _STEP.findall(path))


def _line(
    document: Document,
    severity: str,
    path: Sequence[str | int],
    message: str,
    advice: str = "",
    fix: tuple[str, str] | None = None,
) -> Line:
    from engine.parse import path_text

    metadata = document.value.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    return Line(
        file=document.file,
        line=document.line_of(path),
        severity=severity,
        object=f"{document.value.get('kind')}/{name}",
        path=path_text(tuple(path)),
        message=message,
        help=advice,
        fix=fix,
    )


def _write(found: Sequence[Line], args: Arguments) -> None:
    from kubectl_kpolicy.output.structured import json_text, write_object

    match args.output:
        case "json" | "yaml":
            write_object(sys.stdout, {"findings": [_shown(line) for line in found]}, args.output)
        case "sarif":
            sys.stdout.write(json_text(sarif_log(_findings(found))))
        case "github":
            sys.stdout.write(github_lines(_findings(found)))
        case _:
            _write_table(found, args.color)


def _shown(line: Line) -> dict[str, Any]:
    """Return a finding as data, in which `help` says what to write."""
    return {name: value for name, value in asdict(line).items() if name != "fix"}


def _write_table(found: Sequence[Line], color: str) -> None:
    from kubectl_kpolicy.output.table import Column, Table, wanted

    severity = Column("SEVERITY", roles={"error": "bad", "warning": "warn"})
    table = Table([Column("PLACE"), severity, Column("OBJECT"), Column("MESSAGE")])
    for line in found:
        message = f"{line.path}: {line.message}" if line.path not in line.message else line.message
        table.add(line.place, line.severity, line.object, f"{message} {line.help}".strip())
    sys.stdout.write(table.text(color=wanted(color, sys.stdout)))


def _findings(found: Sequence[Line]) -> list[Finding]:
    """Return findings with their places, as code hosts mark them in the file."""
    return [
        Finding("lint", "", line.severity, f"{line.object}: {line.message}", line.object, Location(line.file, line.line))
        for line in found
    ]  # fmt: skip


class Mistake(NamedTuple):
    """One finding: the line of the text, what tells it from others, and what is written and was meant where that is known."""

    line: int
    what: tuple[str, str, str]
    fix: tuple[str, str] | None


_SURE = 0.8
"""How alike a misspelt name and the one that was meant must be."""
_REACH = 40
"""Lines below the one of a finding in which the text that it is about is looked for."""


def fix_file(path: Path, find: Find) -> int:
    """Mend a file and return how many findings are gone; a file that cannot be read is left as it is."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError):
        return 0
    mended, count = fixed(text, find)
    if count:
        path.write_text(mended)
    return count


def fixed(text: str, find: Find) -> tuple[str, int]:
    """Return a text of YAML with what could be mended, and how many findings are gone.

    `find` returns what is found in a text, None where it cannot be read, as with a field that stands there twice.
    """
    found = find(text) or []
    count = 0
    while (better := _better(text, found, find)) is not None:
        count += len(found) - len(better[1])
        text, found = better
    return text, count


def _better(text: str, found: list[Mistake], find: Find) -> tuple[str, list[Mistake]] | None:
    """Return the text with one finding less and what is still found, None where nothing helps."""
    known = {one.what for one in found}
    for line in found:
        if line.fix is None or not _is_sure(*line.fix):
            continue
        for candidate in _edits(text, line.line, *line.fix):
            left = find(candidate)
            if left is not None and len(left) < len(found) and {one.what for one in left} <= known:
                return candidate, left
    return None


def _is_sure(written: str, meant: str) -> bool:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, written.lower(), meant.lower()).ratio() >= _SURE


def _edits(text: str, line: int, written: str, meant: str) -> Iterator[str]:
    """Yield the text with one occurrence replaced, for each that stands near the line of a finding."""
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[: max(0, line - 1)]))
    end = start + sum(map(len, lines[max(0, line - 1) : line + _REACH]))
    for place in re.finditer(rf"(?<![\w.]){re.escape(written)}(?!\w)", text[start:end]):
        at = start + place.start()
        yield text[:at] + meant + text[at + len(written) :]
