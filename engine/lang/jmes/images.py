"""`image_normalize`: image references in full, by the grammar of the distribution project (row F-08).

The same rules as row V-09 with upstream's defaults, which is what the function uses there too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.lang import imagetext

from .signature import Table, fail

if TYPE_CHECKING:
    from .env import Env

table = Table()


@table.function(
    "image_normalize(string) string", "the image with registry, and with a tag or digest"
)
def image_normalize(_env: Env, image: str) -> str:
    """Return the image reference in full. Raises EvaluationError with upstream's text."""
    try:
        host, path, tag, digest = imagetext.parse(image)
    except EvaluationError as error:
        raise fail("image_normalize", error.message) from error
    name = f"{host}/{path}" if host else path
    return f"{name}@{digest}" if digest else f"{name}:{tag}"
