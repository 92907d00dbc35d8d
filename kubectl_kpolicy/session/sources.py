"""Files, folders and standard input as documents: what every command that takes PATHs reads with.

Globs are left to the shell. Only local sources are read; addresses of git, web and registry are refused in one wording.
"""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import DocumentError
from engine.lang import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.lang.yaml import Document

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
_REMOTE = ("http://", "https://", "git@", "git://", "ssh://", "oci://", "github.com/")


def read_documents(paths: Iterable[str], *, strict: bool = False) -> list[Document]:
    """Return the documents at the given places in order, members of `List` kinds one by one.

    A folder gives every YAML and JSON file below it, sorted, hidden ones left out. Raises DocumentError with file and line for what
    cannot be read.
    """
    with collector_off():
        return [
            part
            for path in paths
            for file, data in _texts(path)
            for part in expand(yaml.load_all(data, file=file, strict=strict))
        ]


def expand(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield documents, and in place of a `List` (or `PodList`, …) its members with their own lines."""
    for document in documents:
        value = document.value
        if (
            not isinstance(value, dict)
            or not str(value.get("kind", "")).endswith("List")
            or not isinstance(value.get("items"), list)
        ):
            yield document
            continue
        yield from expand(
            document.part(("items", index), item) for index, item in enumerate(value["items"])
        )


def _texts(path: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of what a path names."""
    if path == STDIN:
        yield "<stdin>", sys.stdin.buffer.read()
        return
    if path.startswith(_REMOTE):
        raise DocumentError(
            f"cannot read `{path}`: git, web and registry sources come with the cluster work",
            help="fetch it first, and name the local file or folder",
        )
    place = Path(path)
    for file in _below(place) if place.is_dir() else [place]:
        yield str(file), _content(file)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        reason = (error.strerror or "not readable").lower()
        raise DocumentError(
            f"cannot read `{file}`: {reason}",
            help="check the path; folders and `-` can be named too",
        ) from error


def _below(folder: Path) -> list[Path]:
    """Return the YAML and JSON files below a folder, sorted, none in hidden folders."""
    found = (file for file in folder.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    return sorted(
        file
        for file in found
        if not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the garbage collector off while much is loaded: nothing of it is garbage, and a fifth of the time is saved."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
