"""The policies in force, compiled: fed by watches, read by the webhook and the loops.

Objects are put in as they change; readers take a `Snapshot`, which is immutable and swapped as a whole, so that a request
sees the policies before or after a change and never a mixture. Only what changed is compiled again, told by a digest of
its content; a changed policy that does not compile leaves its last working form in force.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from controllers.store.policies import (
    ExceptionRules,
    content_hash,
    exception_hash,
    exception_key,
    has_native,
    is_cel,
    policy_key,
    read_cel_exception,
    read_exception,
    read_policy,
)
from engine.errors import EngineError
from engine.evaluate import CompiledPolicy, compile_policy
from engine.exceptions import CompiledException, compile_exception
from engine.fields import items
from engine.grants.cause import Granted, granted_by
from engine.model.policy import CEL_KEY, CelException

from .webhook_routes import Sorting, WebhookRoutes, build_routes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.evaluate.cel.exceptions import CompiledCelException
    from engine.model import Object, Policy, PolicyException

    Compiled = CompiledException | CompiledCelException
    _Named = dict[str | tuple[str, str], dict[str, tuple[str, Compiled]]]
    """Exceptions with their digests by their own names, by the key of a policy or its name and kind."""


@dataclass(frozen=True, slots=True)
class BrokenException:
    """An exception that does not compile and covers nothing: why, and the policies written in CEL that it names, by name and kind."""

    key: str
    error: EngineError
    references: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Snapshot:
    """All policies of one instant.

    `routes` are by path, `compiled` by policy key; of these `judged` has the rules that we judge by, without those for which the API
    server has a native policy. `problems` say why a policy (by key) or exception is not in force as
    written. `names_events` tells whether some rule is written for Events by name (they are filtered out otherwise);
    `broken` are the exceptions that do not compile; `granted` are the grants behind exceptions of both groups, by what tells the exception from all others.
    """

    routes: WebhookRoutes = field(default_factory=lambda: build_routes(()))
    compiled: Mapping[str, CompiledPolicy] = field(default_factory=dict)
    judged: Mapping[str, CompiledPolicy] = field(default_factory=dict)
    problems: Mapping[str, EngineError] = field(default_factory=dict)
    exceptions: tuple[CompiledException, ...] = ()
    cel_exceptions: tuple[CompiledCelException, ...] = ()
    broken: tuple[BrokenException, ...] = ()
    names_events: bool = False
    granted: Mapping[str, Granted] = field(default_factory=dict)

    def is_native(self, key: str) -> bool:
        """Tell whether the API server judges by a native policy in place of this one, or of rules of it."""
        return self.judged.get(key) is not self.compiled.get(key)

    @cached_property
    def by_key(self) -> Mapping[str, Policy]:
        """The policies that are in force, by what tells each from all others."""
        return {key: one.policy for key, one in self.compiled.items()}

    @cached_property
    def exceptions_by_key(self) -> dict[str, PolicyException | CelException]:
        """The exceptions that count, of both groups."""
        found: dict[str, PolicyException | CelException] = {
            one.key: one.exception for one in self.exceptions
        }
        return found | {one.exception.identity: one.exception for one in self.cel_exceptions}


@dataclass(frozen=True, slots=True)
class _Known:
    """One compiled policy, what it was made from, and why that is not the object as it stands, if it is not."""

    signature: tuple[str, ...]
    compiled: CompiledPolicy | None = None
    source: Object | None = None
    error: EngineError | None = None


class PolicyCache:
    """Policies and exceptions, kept compiled."""

    def __init__(self, rules: ExceptionRules | None = None, *, force_ignore: bool = False) -> None:
        self._rules = rules or ExceptionRules()
        self._force_ignore = force_ignore
        self._objects: dict[str, tuple[str, Object]] = {}
        self._exceptions: dict[str, tuple[str, Compiled | BrokenException]] = {}
        self._known: dict[str, _Known] = {}
        self._native: set[str] = set()
        self._narrowed: dict[str, tuple[CompiledPolicy, CompiledPolicy]] = {}
        self._sorting = Sorting()
        self._snapshot = Snapshot()
        self._is_stale = False

    def put_policy(self, obj: Object) -> bool:
        """Take over a policy of any kind; return whether it means something else than before."""
        key, digest, is_native = policy_key(obj), content_hash(obj), has_native(obj)
        known = self._objects.get(key)
        if known is not None and known[0] == digest and is_native == (key in self._native):
            return False
        self._objects[key] = (digest, obj)
        (self._native.add if is_native else self._native.discard)(key)
        self._is_stale = True
        return True

    def remove_policy(self, obj: Object) -> None:
        """Forget a policy."""
        key = policy_key(obj)
        self._objects.pop(key, None)
        self._known.pop(key, None)
        self._narrowed.pop(key, None)
        self._native.discard(key)
        self._is_stale = True

    def put_exception(self, obj: Object) -> bool:
        """Take over a PolicyException; return whether it means something else than before."""
        key, digest = exception_key(obj), exception_hash(obj)
        known = self._exceptions.get(key)
        if known is not None and known[0] == digest:
            return False
        self._exceptions[key] = (digest, _compiled(obj))
        self._is_stale = True
        return True

    def remove_exception(self, obj: Object) -> None:
        """Forget an exception."""
        self._exceptions.pop(exception_key(obj), None)
        self._is_stale = True

    @property
    def snapshot(self) -> Snapshot:
        """The policies as they are now, compiled if something changed since the last look."""
        if self._is_stale:
            self._snapshot = self._build()
            self._is_stale = False
        return self._snapshot

    def _build(self) -> Snapshot:
        broken = {
            key: one
            for key, (_, one) in sorted(self._exceptions.items())
            if isinstance(one, BrokenException)
        }
        exceptions = {
            key: (digest, one)
            for key, (digest, one) in sorted(self._exceptions.items())
            if not isinstance(one, BrokenException) and self._rules.counts(one.exception.namespace)
        }
        compiled = self._compile_all(_by_name(exceptions))
        judged = {
            key: self._without_native(key, one) if key in self._native else one
            for key, one in compiled.items()
        }
        in_force = [one for _, one in exceptions.values()]
        grants = [granted_by(one.exception) for one in in_force]
        return Snapshot(
            routes=build_routes(
                judged.values(), force_ignore=self._force_ignore, sorting=self._sorting
            ),
            compiled=compiled,
            judged=judged,
            problems=self._problems(broken),
            exceptions=_classic(in_force),
            cel_exceptions=_of_cel(in_force),
            broken=tuple(
                one for one in broken.values() if self._rules.counts(one.key.partition("/")[0])
            ),
            names_events=any(
                "Event" in (rule.matcher.kinds or ())
                for one in compiled.values()
                for rule in one.rules
            ),
            granted={one.exception: one for one in grants if one is not None},
        )

    def _compile_all(self, named: _Named) -> dict[str, CompiledPolicy]:
        """Compile the policies that changed, or whose exceptions did; return all that can be compiled, by their keys."""
        for key in self._objects:
            self._known[key] = self._compile(key, named)
        return {
            key: known.compiled
            for key, known in sorted(self._known.items())
            if known.compiled is not None
        }

    def _problems(self, broken: Mapping[str, BrokenException]) -> dict[str, EngineError]:
        """Return what is wrong with exceptions and with policies, by their keys."""
        of_policies = {
            key: known.error for key, known in self._known.items() if known.error is not None
        }
        return {key: one.error for key, one in broken.items()} | of_policies

    def _without_native(self, key: str, compiled: CompiledPolicy) -> CompiledPolicy:
        """Return a policy without the rules that a native one stands for: those that autogen adds stay; the same one each time."""
        known = self._narrowed.get(key)
        if known is not None and known[0] is compiled:
            return known[1]
        written = {rule.name for rule in compiled.policy.rules}
        kept = tuple(rule for rule in compiled.rules if written and rule.rule.name not in written)
        narrowed = CompiledPolicy(compiled.policy, kept)
        self._narrowed[key] = (compiled, narrowed)
        return narrowed

    def _compile(self, key: str, named: _Named) -> _Known:
        digest, obj = self._objects[key]
        naming = named.get(_reference(obj) if is_cel(obj) else key, {})
        signature = (digest, *(f"{name}={of}" for name, (of, _) in naming.items()))
        known = self._known.get(key)
        if known is not None and known.signature == signature:
            return known
        known = known or _Known(())
        given = tuple(one for _, one in naming.values())
        try:
            return _Known(signature, _compiled_policy(obj, given), obj)
        except EngineError as error:
            return _Known(signature, _again(known.source, given), known.source, error)


def _classic(exceptions: Iterable[Compiled]) -> tuple[CompiledException, ...]:
    return tuple(one for one in exceptions if isinstance(one, CompiledException))


def _of_cel(exceptions: Iterable[Compiled]) -> tuple[CompiledCelException, ...]:
    return tuple(one for one in exceptions if not isinstance(one, CompiledException))


def _by_name(exceptions: Mapping[str, tuple[str, Compiled]]) -> _Named:
    """Return exceptions by what they name policies by: key, or name and kind (rows X-02, X-22b)."""
    found: _Named = {}
    for name, (digest, one) in exceptions.items():
        names = one.rules if isinstance(one, CompiledException) else one.exception.references
        for named in names:
            found.setdefault(named, {})[name] = (digest, one)
    return found


def _reference(obj: Object) -> tuple[str, str]:
    return str(obj["metadata"]["name"]), str(obj.get("kind"))


def _compiled_policy(obj: Object, exceptions: tuple[Compiled, ...]) -> CompiledPolicy:
    """Compile a policy of any kind with the exceptions that name it; raises EngineError."""
    if not is_cel(obj):
        return compile_policy(read_policy(obj), _classic(exceptions))
    from engine.evaluate.cel.policies import compile_cel_policy

    return compile_cel_policy(read_policy(obj), _of_cel(exceptions))


def _again(source: Object | None, exceptions: tuple[Compiled, ...]) -> CompiledPolicy | None:
    """Compile the last form of a policy that compiled, with the exceptions of now."""
    if source is None:
        return None
    try:
        return _compiled_policy(source, exceptions)
    except EngineError:
        return None


def _compiled(obj: Object) -> Compiled | BrokenException:
    try:
        if not is_cel(obj):
            return compile_exception(read_exception(obj))
        from engine.evaluate.cel.exceptions import compile_cel_exception

        return compile_cel_exception(read_cel_exception(obj))
    except EngineError as error:
        key = exception_key(obj).removeprefix(CEL_KEY)
        return BrokenException(key, error, _references(obj) if is_cel(obj) else frozenset())


def _references(obj: Object) -> frozenset[tuple[str, str]]:
    """Return what an exception that cannot be read names, as far as it can be made out."""
    found = items(obj, "spec", "policyRefs")
    return frozenset((str(one.get("name")), str(one.get("kind"))) for one in found)
