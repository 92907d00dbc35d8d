"""What the sandbox asks of an implementation of CEL. It has none of its own: whoever starts it hands one over, or none.

For conditions of webhooks, rules in the schemas of custom resources, and native admission policies. `kubectl kpolicy sandbox` hands
over kpolicy's engine. Without any, rules of custom resources are passed over with a warning, and all else that takes CEL is refused.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from .errors import not_implemented

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet
    from datetime import datetime

Object = dict[str, Any]


class Program(Protocol):
    """A compiled expression."""

    @property
    def names(self) -> AbstractSet[str]:
        """The names that the bindings have to offer."""

    def __call__(self, bindings: Mapping[str, Any], /) -> Any:
        """Return the value. ValueError, worded for the user, where there is none."""


class Facts(Protocol):
    """What expressions of admission policies may ask of the cluster; LookupError says why there is no answer."""

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, None when there is none."""

    def list(self, api_version: str, kind: str, namespace: str, selector: Object) -> list[Object]:
        """Return the objects that a label selector selects."""

    def reviewed(self, review: Object) -> Object:
        """Return a SubjectAccessReview with its answer."""


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """A request as a policy sees it: the AdmissionRequest, the kind of its resource, labels of its namespace, the present instant."""

    request: Object
    kind: str
    namespace_labels: Mapping[str, str]
    now: datetime


class Verdict(Protocol):
    """Something that a policy does not let pass.

    `unmet` is the expression of the validation that was false, empty where none was; `is_error` says that it could not be evaluated.
    """

    @property
    def message(self) -> str:
        """What is said to the user."""

    @property
    def unmet(self) -> str:
        """The expression."""

    @property
    def is_error(self) -> bool:
        """Whether evaluation failed."""


class Expressions(Protocol):
    """An implementation of CEL with the functions that Kubernetes adds."""

    def compile(self, text: str, /) -> Program:
        """Compile an expression. ValueError, worded for the user, for one that cannot be."""

    def faults(self, obj: Object, /) -> Iterable[tuple[str, str]]:
        """Return what is wrong with an admission policy or its binding: paths of fields, and messages."""

    def verdicts(
        self, policy: Object, binding: Object, asked: PolicyInput, facts: Facts, /
    ) -> Iterable[Verdict]:
        """Return what a bound policy does not let pass. ValueError, worded for the user, for a policy that cannot be evaluated."""

    def mutated(
        self, policy: Object, binding: Object, asked: PolicyInput, facts: Facts, /
    ) -> tuple[Object | None, str]:
        """Return the object as a bound policy changes it (None: as it is), and why that failed. ValueError as in `verdicts`."""


def needed(expressions: Expressions | None) -> Expressions:
    """Return the implementation. ApiError 501 where the sandbox was started without one."""
    if expressions is None:
        raise not_implemented("evaluate CEL, for it was started without `--expressions`")
    return expressions


def named(place: str) -> Expressions:
    """Return the implementation that a word of the form `module:attribute` names, which is called for it. ValueError when none is there."""
    module, _, attribute = place.partition(":")
    try:
        return cast("Expressions", getattr(importlib.import_module(module), attribute)())
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"no implementation of CEL is at `{place}`: {error}") from error
