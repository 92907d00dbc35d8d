"""Objects kept as compressed text: for whoever goes through very many of them, and reads one at a time.

As Python's own values a Pod takes some fifty kilobytes, as text a tenth of that, and compressed beside another Pod some hundreds of
bytes. A hundred thousand of them are more than most nodes have otherwise, and the collector of garbage would walk through all.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

import orjson

from .store import Key, Store, identity_of

if TYPE_CHECKING:
    from engine.model import Object

PACKED_PAGE: Final = 100
"""Objects of a page of a list that is packed: what its values took, among what is kept, stays with the process; of Pods 5 MiB."""
_LEVEL = 1
_WINDOW = 15
"""Bits of the window of compression, which holds 32 KiB: as much of another object is referred to."""

_Kept = tuple[str, str, bytes]
"""Uid, resource version, compressed JSON. A bare tuple, which the collector of garbage passes over."""


class PackedStore(Store):
    """A Store whose objects are made anew at each look. It has no indexes, and of an object as it was listeners are told the identity only."""

    def __init__(self) -> None:
        super().__init__()
        self._example = b""

    def _kept(self, obj: Object) -> _Kept:
        text = orjson.dumps(obj)
        if not self._example:
            # objects of a kind have much in common, and the first to come is an example as good as any
            self._example = text[-(1 << _WINDOW) :]
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -_WINDOW, zdict=self._example)
        return *identity_of(obj), packer.compress(text) + packer.flush()

    def _shown(self, kept: _Kept) -> Object:
        unpacker = zlib.decompressobj(-_WINDOW, zdict=self._example)
        shown: Object = orjson.loads(unpacker.decompress(kept[2]))
        return shown

    def _before(self, key: Key, kept: _Kept) -> Object:
        namespace, name = key
        place = {"namespace": namespace, "name": name, "uid": kept[0], "resourceVersion": kept[1]}
        return {"metadata": {field: text for field, text in place.items() if text}}

    def _identity(self, kept: _Kept) -> tuple[str, str]:
        return kept[:2]
