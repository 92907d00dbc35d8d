"""Files, folders and standard input as documents: what every command that takes PATHs reads with.

A file is read and decoded once per process: hundreds of test cases name the same files, and each decoded value is shared
because nobody changes it. Addresses are refused here; where they may stand, `remote` fetched them before.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from engine.collector import collector_off
from engine.errors import DocumentError, EngineError, Location, reason_of
from engine.fields import members
from engine.lang import yaml
from kubectl_kpolicy.output.diagnostics import report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from engine.lang.yaml import Document

STDIN = "-"
ADDRESSES = ("http://", "https://", "git@", "ssh://", "file://", "git://", "oci://")
"""How what lies elsewhere begins; see `apply.remote`."""
SUFFIXES = (".yaml", ".yml", ".json")

_read: dict[tuple[str, int, int], tuple[Document, ...]] = {}


def read_paths(paths: Iterable[str | Path], *, stdin: str | None = None) -> list[Document]:
    """Return the documents of files, of all files below folders, and of `-`, in the order given; empty ones left out.

    `stdin` replaces the text of standard input. Raises DocumentError for what cannot be read, and for git, registry and
    web addresses.
    """
    documents: list[Document] = []
    for path in paths:
        if path == STDIN:
            documents += _decoded(sys.stdin.read() if stdin is None else stdin, "<stdin>")
        else:
            for file in _files_at(path):
                documents += read_file(file)
    return documents


def read_documents(paths: Iterable[str], *, strict: bool = False) -> list[Document]:
    """Return the documents at the given places in order, empty ones too, members of `List` kinds one by one.

    With `strict` a key that is given twice is an error. Raises DocumentError with file and line for what cannot be read.
    """
    with collector_off():
        return [
            part
            for path in paths
            for text, name in _texts(path)
            for part in expand(yaml.load_all(text, file=name, strict=strict))
        ]


def _texts(path: str) -> Iterator[tuple[bytes, str]]:
    """Yield content and name of what a path names."""
    if path == STDIN:
        yield sys.stdin.buffer.read(), "<stdin>"
    else:
        for file in files_at(path):
            yield _content(file), str(file)


def expand(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield documents, and in place of a `List` (or `PodList`, …) its members with their own lines."""
    for document in documents:
        found = members(document.value)
        if found is None:
            yield document
            continue
        yield from expand(document.part(("items", index), item) for index, item in enumerate(found))


def placed(path: str) -> str | Path:
    """Return a path as `pathlib` writes it, which is loaded only for one that it would write differently."""
    if os.path.normpath(path) == path:
        return path
    from pathlib import Path  # here: it takes a tenth of what small commands take

    return Path(path)


def _files_at(path: str | Path) -> Iterable[str | Path]:
    """Return what `files_at` returns."""
    refuse_remote(str(path))
    return (placed(path),) if isinstance(path, str) and os.path.isfile(path) else files_at(path)


def files_at(path: str | Path) -> list[Path]:
    """Return the file at `path`, or every YAML and JSON file below the folder, sorted by name.

    Raises DocumentError for an address and for no path at all, which `pathlib` takes for the current folder.
    """
    from pathlib import Path  # here, as in `placed`

    if not str(path):
        raise DocumentError("a path is empty", help="name a file or folder; `.` is the current one")
    refuse_remote(str(path))
    place = Path(path)
    if place.is_dir():
        return sorted(file for file in place.rglob("*") if _is_document(file, place))
    return [place]


def _is_document(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return file.suffix in SUFFIXES and not hidden and file.is_file()


def refuse_remote(path: str) -> None:
    """Raise DocumentError where `path` is an address rather than a path."""
    if path.startswith(ADDRESSES):
        raise DocumentError(
            f"cannot read `{path}`: this must be a local file or folder", help="fetch it first"
        )


def read_file(path: str | Path) -> tuple[Document, ...]:
    """Return the documents of one file; raises DocumentError naming the file and the line."""
    try:
        state = os.stat(path)
    except OSError as error:
        raise _unreadable(path, error) from error
    key = (str(path), state.st_mtime_ns, state.st_size)
    found = _read.get(key)
    if found is None:
        found = _read[key] = tuple(_decoded(_content(path), str(path)))
    return found


def check_there(paths: Iterable[str]) -> None:
    """Raise DocumentError for the first of these files and folders that is not there; addresses and standard input always are."""
    for path in paths:
        try:
            if path != "-" and not path.startswith(ADDRESSES):
                os.stat(path)
        except OSError as error:
            raise _unreadable(path, error) from error


def _content(file: str | Path) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise _unreadable(file, error) from error


def _unreadable(path: str | Path, error: OSError) -> DocumentError:
    return DocumentError(
        f"cannot read `{path}`: {reason_of(error)}",
        help="check the path; folders and `-` can be named too",
    )


def _decoded(text: str | bytes, name: str) -> list[Document]:
    with collector_off():
        documents = yaml.load_all(text, file=name)
    for document in documents:
        for line, key in document.repeated:
            text_of = f"key `{key}` is given twice, its last value counts"
            report(EngineError(text_of, at=Location(name, line)), word="warning")
    return [found for found in documents if found.value is not None]


def first_document(path: str | Path, what: str) -> Document:
    """Return the only document of a settings file; raises EngineError where there is none or more than one."""
    documents = read_file(path)
    if len(documents) != 1:
        raise EngineError(
            f"{what} `{path}` must hold one document, found {len(documents)}",
            at=Location(str(path)),
        )
    return documents[0]
