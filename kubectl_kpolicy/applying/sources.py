"""Files, folders and standard input as decoded documents: the only reading that `apply`, `test` and `explain` do.

A file is read and decoded once per process: hundreds of test cases name the same files, and each decoded value is shared
because nobody changes it. Addresses are refused here; where they may stand, `remote` fetched them before.
"""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import DocumentError, EngineError, Location
from engine.lang import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.lang.yaml import Document

STDIN = "-"
ADDRESSES = ("http://", "https://", "git@", "ssh://", "file://", "git://", "oci://")
"""How what lies elsewhere begins; see `remote`."""
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
            for file in files_at(path):
                documents += read_file(file)
    return documents


def files_at(path: str | Path) -> list[Path]:
    """Return the file at `path`, or every YAML and JSON file below the folder, sorted by name."""
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


def read_file(path: Path) -> tuple[Document, ...]:
    """Return the documents of one file; raises DocumentError naming the file and the line."""
    try:
        state = path.stat()
        key = (str(path), state.st_mtime_ns, state.st_size)
        found = _read.get(key)
        if found is None:
            found = _read[key] = tuple(_decoded(path.read_bytes(), str(path)))
        return found
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise DocumentError(f"cannot read `{path}`: {reason}", at=Location(str(path))) from error


def _decoded(text: str | bytes, name: str) -> list[Document]:
    with collector_off():
        return [found for found in yaml.load_all(text, file=name) if found.value is not None]


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the garbage collector off while many values are made: nothing that is loaded is garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def first_document(path: Path, what: str) -> Document:
    """Return the only document of a settings file; raises EngineError where there is none or more than one."""
    documents = read_file(path)
    if len(documents) != 1:
        raise EngineError(
            f"{what} `{path}` must hold one document, found {len(documents)}",
            at=Location(str(path)),
        )
    return documents[0]
