"""One test case run: its policies applied to its resources, and every expectation turned into rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.autogen import names_of
from engine.errors import DocumentError
from engine.evaluate.policy_set import CLASSIC
from engine.lang import wildcard
from engine.model import Object, Policy, RuleResult, Status
from engine.model.kinds import BY_NAME, KUBERNETES
from engine.record import record
from kubectl_kpolicy.apply.documents import objects_of
from kubectl_kpolicy.apply.names import identity
from kubectl_kpolicy.apply.payloads import Payload, is_timed, mode_of
from kubectl_kpolicy.apply.processor import PolicyAnswer, Processor, Setting
from kubectl_kpolicy.apply.scope import labels_by_namespace
from kubectl_kpolicy.apply.verdicts import shown_status
from kubectl_kpolicy.session.sources import files_at, read_file

from .format import Declared, Expectation
from .verdict import NOT_FOUND, OK, Answered, Asked, Row, difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from .loading import Bench

# `--test-case-selector "policy=…,rule=…,resource=…"`: which expectations of a run are looked at.

KEYS = ("policy", "rule", "resource")


@record
class Selector:
    """Wildcard patterns for the names of policy, rule and resource."""

    policy: str = "*"
    rule: str = "*"
    resource: str = "*"

    def takes(self, policy: str, rule: str, resource: str) -> bool:
        """Return whether a row with these names is looked at."""
        return (
            wildcard.match(self.policy, policy)
            and wildcard.match(self.rule, rule)
            and wildcard.match(self.resource, resource)
        )


def parse_selector(text: str) -> Selector:
    """Read `policy=a,rule=b,resource=c` in any order, each part optional; raises DocumentError for other keys."""
    found: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or key.strip() not in KEYS:
            raise DocumentError(
                f"cannot read `{part}` of the test case selector",
                help="write it as policy=NAME,rule=NAME,resource=NAME",
            )
        found[key.strip()] = value.strip() or "*"
    return Selector(**found)


ALL = Selector()
NOT_EVALUATED = "Not evaluated"
_Identity = tuple[str, str, str, str]
_Known = dict[_Identity, list[tuple[PolicyAnswer, RuleResult]]]
_ANY = Declared("", "")


def run_case(
    bench: Bench, *, now: datetime, selector: Selector = ALL, resolve_values: bool = False
) -> list[Row]:
    """Run a test case and return its rows; `now` is the instant of all decisions."""
    run = _Run(bench, now, resolve_values=resolve_values)
    return [
        row
        for expectation in bench.case.expectations
        for row in run.rows(expectation)
        if selector.takes(row.policy, row.rule, row.declared)
    ]


class _Run:
    """Answers by operation, computed when a result first asks for them."""

    def __init__(self, bench: Bench, now: datetime, *, resolve_values: bool = False) -> None:
        self._bench = bench
        loaded = bench.loaded
        self._processor = Processor(
            loaded.policies,
            loaded.exceptions,
            bindings=loaded.bindings,
            setting=Setting(
                now=now,
                user=bench.user,
                values=bench.values,
                world=bench.world,
                namespace_labels=labels_by_namespace(bench.objects),
                resolve_values=resolve_values,
            ),
        )
        self._known: dict[str, _Known] = {}
        self._broken = {
            problem.policy.key: str(problem.error) for problem in self._processor.problems
        }

    def rows(self, expected: Expectation) -> Iterator[Row]:
        refusal = self._refusal(expected)
        for declared in expected.resources or (_ANY,):
            operation = self._operation(expected, None if refusal else declared)
            asked = Asked(self._bench.case.place, expected, declared, operation)
            if refusal is not None:
                yield asked.missing(*refusal)
            else:
                yield from self._rows(asked)

    def _refusal(self, expected: Expectation) -> tuple[str, str] | None:
        """Return reason and message where the policy of a result cannot answer at all."""
        loaded = self._bench.loaded
        later = next((item for item in loaded.unsupported if item.name == expected.policy), None)
        if later and not self._policies(expected):
            return NOT_EVALUATED, f"policies of kind {later.kind} are not evaluated by this version"
        if not self._policies(expected):
            if loaded.problems:
                problem = loaded.problems[0]
                reason = f"{problem.at}: {problem}"
                return NOT_FOUND, f"policy {expected.policy} was not loaded: {reason}"
            return NOT_FOUND, f"policy {expected.policy} is not in the files of the test"
        if expected.policy in self._broken:
            return NOT_EVALUATED, self._broken[expected.policy]
        return None

    def _policies(self, expected: Expectation) -> list[Policy]:
        return [policy for policy in self._bench.loaded.policies if expected.is_of(policy)]

    def _rows(self, asked: Asked) -> Iterator[Row]:
        expected, declared = asked.expected, asked.declared
        if any(mode_of(policy) != KUBERNETES for policy in self._policies(expected)):
            yield from self._payload_rows(asked)
            return
        objects = [obj for obj in self._candidates(declared) if _is_declared(declared, obj)]
        if not objects and self._bench.payloads and all(map(is_timed, self._policies(expected))):
            # policies that delete judge documents of any form
            yield from self._payload_rows(asked)
            return
        if not objects:
            message = f"resource {declared.text} is not in the files of the test"
            yield asked.missing(NOT_FOUND, message)
            return
        found = [row for obj in objects for row in self._row_of(asked, obj)]
        if found:
            yield from found
        elif all(map(_may_be_silent, self._policies(expected))):
            message = f"policy {expected.policy} gave no answer"
            yield asked.missing(NOT_FOUND, message)
        else:
            yield asked.silent(objects[0])

    def _payload_rows(self, asked: Asked) -> Iterator[Row]:
        """Yield the row of a policy for documents that are no objects, which are declared by the names of their files."""
        rows = [
            self._payload_row(asked, payload)
            for payload in self._bench.payloads
            if asked.declared.name in ("", payload.name)
        ]
        if rows:
            yield next((row for row in rows if row.strict != OK), rows[0])
        else:
            message = f"payload {asked.declared.text} is not in the files of the test"
            yield asked.missing(NOT_FOUND, message)

    def _payload_row(self, asked: Asked, payload: Payload) -> Row:
        for answer in self._processor.judge(payload):
            for result in answer.results:
                if asked.expected.is_of(answer.policy):
                    return asked.answered(_answered(payload.shown, answer, result), "")
        return asked.silent(payload.shown)

    def _candidates(self, declared: Declared) -> Sequence[Object]:
        """Return the objects that a name can mean; where none is named, those that policies were applied to."""
        bench = self._bench
        return (*bench.objects, *bench.targets) if declared is not _ANY else bench.objects

    def _row_of(self, asked: Asked, obj: Object) -> Iterator[Row]:
        """Yield one row for what the rules said about one object, the first miss where they said several things."""
        rows = [
            asked.answered(found, self._difference(asked.expected, found))
            for found in self._answered(asked.expected, obj)
        ]
        if rows:
            yield next((row for row in rows if row.verdict != OK), rows[0])

    def _operation(self, expected: Expectation, declared: Declared | None) -> str:
        if expected.operation:
            return expected.operation
        name = declared.name if declared else ""
        variables = self._bench.values.for_policy(expected.policy.rpartition("/")[2], name)
        return str(variables.get("request.operation") or "CREATE")

    def _answered(self, expected: Expectation, obj: Object) -> Iterator[Answered]:
        known = self._known.get(expected.operation)
        if known is None:
            known = self._known[expected.operation] = self._apply(expected.operation)
        for answer, result in known.get(identity(obj), ()):
            if expected.is_of(answer.policy) and _is_meant(expected, answer, result):
                yield _answered(obj, answer, result)

    def _apply(self, operation: str) -> _Known:
        """Apply the policies to every object; answers are kept by trigger and by the targets that they change."""
        known: _Known = {}
        for obj in self._bench.objects:
            for answer in self._processor.apply(obj, operation=operation):
                for result in answer.results:
                    about = {identity(obj), *(identity(target.before) for target in result.targets)}
                    for key in about:
                        known.setdefault(key, []).append((answer, result))
        return known

    def _difference(self, expected: Expectation, found: Answered) -> str:
        if expected.patched:
            wanted = self._expected(expected.patched)
            may_miss = self._may_miss(expected)
            told = difference(wanted, found.patched, "patched resource", may_miss=may_miss)
            if told:
                return told
        if expected.generated and found.status == "pass":
            wanted = [obj for path in expected.generated for obj in self._expected(path)]
            return difference(wanted, found.generated, "generated resource")
        return ""

    def _may_miss(self, expected: Expectation) -> bool:
        """Tell whether an object may be missing where others are shown: of policies in CEL, unless a failure is expected."""
        of_cel = any(
            BY_NAME[one.kind].is_cel for one in self._policies(expected) if one.kind in BY_NAME
        )
        return of_cel and not expected.fails_on_missing and expected.status != Status.FAIL

    def _expected(self, path: str) -> list[Object]:
        bench = self._bench
        return [
            bench.scopes.placed(obj)
            for file in files_at(bench.case.folder / path)
            for obj in objects_of(read_file(file))
        ]


def _is_meant(expected: Expectation, answer: PolicyAnswer, result: RuleResult) -> bool:
    """Tell whether a result is of the rule that is meant; the one answer of a policy in CEL always is (row CC-20)."""
    rule = expected.rule
    return not rule or answer.policy.kind not in CLASSIC or result.rule in names_of(rule)


def _may_be_silent(policy: Policy) -> bool:
    """Tell whether upstream has no answer at all of a policy whose conditions do not hold (row CC-25)."""
    return policy.kind.removeprefix("Namespaced") in ("GeneratingPolicy", "ImageValidatingPolicy")


def _answered(obj: Object, answer: PolicyAnswer, result: RuleResult) -> Answered:
    return Answered(
        obj,
        shown_status(answer.policy, result),
        result.message,
        (*(target.after for target in result.targets), answer.patched),
        result.generated,
    )


def _is_declared(declared: Declared, obj: Object) -> bool:
    api_version, kind, namespace, name = identity(obj)
    group, _, version = api_version.rpartition("/")
    return (
        declared.name in ("", name)
        and declared.namespace in ("", namespace)
        and declared.kind in ("", kind)
        and declared.group in (None, "*", group)
        and declared.version in (None, "*", version)
    )
