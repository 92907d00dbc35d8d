"""Names for decoded JSON: what every document, object and result inside the engine is made of.

Values are plain Python (`dict`, `list`, `str`, `int`, `float`, `bool`, `None`), never typed models, because policies are
written against whatever fields people have. Nobody changes a value it was given: change is made by copying along the path.
"""

from collections.abc import Mapping
from typing import Any

Json = Any
"""A decoded JSON value of any shape."""

Object = dict[str, Any]
"""A decoded Kubernetes object."""

Block = Mapping[str, Any]
"""A part of a policy document as its author wrote it."""
