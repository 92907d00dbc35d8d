"""Admission policies of the API server itself that guard our kinds, so that they hold while every one of our pods is down.

ValidatingAdmissionPolicy with a binding each. They pin who asks and who decides to who is authenticated, and let nothing be
changed afterwards: four eyes, exceptions that only ever get shorter, uses and sealed records that stay as they are. What is
the controllers' to write is written by the account of the job that it belongs to, and by none of its neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.kube.accounts import Job, account_user
from engine import vocabulary
from engine.generate.labels import ORIGIN, POLICY_NAME
from engine.grants import FINAL
from engine.grants.issuing import LONGEST
from engine.model.kinds import CLASSIC_GROUP

from .crds.native import GROUP, REQUEST_FIELDS, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Object

ME = "request.userInfo.username"
_CREATE, _UPDATE = "oldObject == null", "oldObject != null"
_STATES: Final = ("oldObject", "object")
_KEPT = f"({_UPDATE} && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences)"
_DECISIONS = "(has(object.spec.decisions) ? object.spec.decisions : [])"
_BEFORE = "(has(oldObject.spec.decisions) ? oldObject.spec.decisions : [])"
_CLAIMED = "object.spec.?groups.orValue([])"
_LONGEST = f"duration('{int(LONGEST.total_seconds())}s')"
_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
_NAMESPACES = "system:serviceaccount:kube-system:namespace-controller"
_CLEARED_AWAY = f"{ME} in ['{_COLLECTOR}', '{_NAMESPACES}']"
_EXPIRES_AT: Final = f"metadata.?annotations[?'{vocabulary.EXPIRES_AT}']"
_EXCEPTIONS: Final[Object] = {
    "apiGroups": ["kyverno.io", "policies.kyverno.io"],
    "apiVersions": ["*"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["policyexceptions"],
}


def guards(namespace: str = "kyverno") -> list[Object]:
    """Return the policies and their bindings, in the order in which to install them, for controllers in a namespace."""
    found = (
        *(
            _grants(),
            _grant_states(namespace),
            _exceptions(namespace),
            _ends(),
            _codes(),
            _claims(),
            _code_states(namespace),
        ),
        *(_uses(), _uses_and_notes(namespace), _segments(), _records(namespace)),
        *(_labels(namespace), _origins(namespace)),
    )
    return [obj for policy in found for obj in (policy, _bound(policy))]


def _grants() -> Object:
    fixed = " && ".join(f"object.spec.?{name} == oldObject.spec.?{name}" for name in REQUEST_FIELDS)
    added = f"{_DECISIONS}.filter(d, !(d in {_BEFORE}))"
    return _policy(
        "kpolicy-grants",
        _rule(GROUP, VERSION, "grants", "CREATE", "UPDATE"),
        [
            (f"{_UPDATE} || object.spec.requester == {ME}", "spec.requester must be who creates the grant"),
            (f"{_UPDATE} || object.spec.?requesterGroups.orValue([]).all(g, g in request.userInfo.groups)",
             "spec.requesterGroups must be groups of who creates the grant"),
            (f"{_UPDATE} || size({_DECISIONS}) == 0", "a new grant has no decisions"),
            (f"{_CREATE} || ({fixed})", "a request cannot be changed; withdraw it and make another one"),
            (f"{_CREATE} || {_BEFORE}.all(d, d in {_DECISIONS})", "decisions cannot be changed or taken back"),
            (f"{_CREATE} || size({_DECISIONS}) <= size({_BEFORE}) + 1", "one decision at a time"),
            (f"{_CREATE} || {added}.all(d, d.by == {ME})", "a decision is made in one's own name"),
            (f"{_CREATE} || {added}.all(d, d.?groups.orValue([]).all(g, g in request.userInfo.groups))",
             "a decision names only groups of who makes it"),
            (f"{_CREATE} || {added}.all(d, d.verdict != 'approve' || {ME} != oldObject.spec.requester)",
             "nobody approves an own request"),
            (f"{_CREATE} || {added}.all(d, d.verdict != 'approve' || !{ME}.startsWith('system:serviceaccount:'))",
             "a service account cannot approve"),
            *_acting(f"{_CREATE} || {added}.all(d, d.verdict != 'approve')", "oldObject.spec.requester", "object.metadata.namespace"),
            # what is owned goes with its owner, and with it how long ago the last such grant ended
            (f"!has(object.metadata.ownerReferences) || {_KEPT} || {_MAY_DELETE}", "only who may delete a grant may give it owners"),
        ],
    )  # fmt: skip


def _acting(is_fine: str, user: str, namespace: str) -> list[tuple[str, str]]:
    """Return the checks that nobody agrees to what a service account asks for that he may act as, and so to his own request.

    Whoever may make exceptions himself asks nobody. INVARIANT: two questions to the authorizer are all that an expression may cost.
    """
    place = f".namespace({user}.split(':')[2])"
    named = f"{place}.name({user}.split(':')[3])"
    accounts, pods = (
        "authorizer.group('').resource('serviceaccounts')",
        "authorizer.group('').resource('pods')",
    )
    ways = (
        f"{accounts}.subresource('token'){named}.check('create')",
        f"{accounts}{named}.check('impersonate')",
        f"{pods}{place}.check('create')",
    )
    may_himself = f"authorizer.group('kyverno.io').resource('policyexceptions').namespace({namespace}).check('create').allowed()"
    return [
        (
            f"{is_fine} || !{user}.startsWith('system:serviceaccount:') || !{way}.allowed() || {may_himself}",
            "nobody agrees to the request of a service account that he may act as",
        )
        for way in ways
    ]


def _grant_states(namespace: str) -> Object:
    """Guard what the controllers say about grants: an end that was set comes only nearer, and what is over stays so."""
    state = "oldObject.?status.?state.orValue('')"
    over = ", ".join(f"'{one}'" for one in sorted(FINAL))
    return _policy(
        "kpolicy-grant-states",
        _rule(GROUP, VERSION, "grants/status", "UPDATE"),
        [
            (_is(namespace, Job.GRANTS), "the state of a grant is for the controllers to write"),
            (_nearer("?status.?expiresAt"), "the end of a grant can only come nearer; extend it by another one"),
            (f"!({state} in [{over}]) || object.?status.?state.orValue('') == {state}",
             "a grant that is over stays so"),
        ],
    )  # fmt: skip


def _records(namespace: str) -> Object:
    """Guard the audit trail and what became of uses: the account that keeps them, and for deletions nobody."""
    return _policy(
        "kpolicy-records",
        _rule(GROUP, VERSION, "auditsegments codeuses/status", "CREATE", "UPDATE", "DELETE"),
        [
            (f"object == null ? {_CLEARED_AWAY} : {_is(namespace, Job.GRANTS)}",
             "records are for the controllers to write"),
        ],
    )  # fmt: skip


def _uses_and_notes(namespace: str) -> Object:
    """Guard what is written down while requests are answered, until the trail has it."""
    kept = _is(namespace, Job.GRANTS)
    return _policy(
        "kpolicy-uses-and-notes",
        _rule(GROUP, VERSION, "codeuses auditnotes", "CREATE", "UPDATE", "DELETE"),
        [
            (f"oldObject == null ? {_is(namespace, Job.ADMISSION)} : ({kept} || (object == null && {_CLEARED_AWAY}))",
             "records are for the controllers to write"),
        ],
    )  # fmt: skip


def _is(namespace: str, job: Job) -> str:
    """Return the test whether the account of a job asks, and no other of its namespace."""
    return f"{ME} == '{account_user(namespace, job)}'"


def _exceptions(namespace: str) -> Object:
    """Guard the exceptions that grants cause: made by their account only, neither longer nor wider for anybody."""
    owned = f"metadata.?annotations[?'{vocabulary.GRANT}'].hasValue()"
    caused = f"metadata.?ownerReferences.orValue([]).exists(o, o.apiVersion.startsWith('{GROUP}/'))"
    carried = f"{_UPDATE} && (oldObject.{owned} || oldObject.{caused})"
    return _policy(
        "kpolicy-granted-exceptions",
        _EXCEPTIONS,
        [
            (f"({carried}) || {_is(namespace, Job.GRANTS)}", "an exception by grant is made from its grant; ask for one"),
            (f"{_CREATE} || {_nearer(_EXPIRES_AT)}",
             "the end of a granted exception can only come nearer; extend the grant instead"),
            (f"{_CREATE} || object.metadata.?annotations[?'{vocabulary.GRANT}'] == oldObject.metadata.?annotations[?'{vocabulary.GRANT}']",
             "a granted exception stays with its grant"),
            (f"{_CREATE} || {_KEPT} || {ME} == '{_COLLECTOR}'", "a granted exception stays with its grant"),
            (f"{_CREATE} || object.metadata.?annotations[?'{vocabulary.USES}'] == oldObject.metadata.?annotations[?'{vocabulary.USES}']",
             "how often a granted exception may be used stays as it is"),
            (f"{_CREATE} || object.spec == oldObject.spec",
             "a granted exception cannot be changed; make another grant"),
        ],
        conditions=[
            {
                "name": "granted",
                "expression": f"object.{owned} || object.{caused} || ({carried})",
            }
        ],
    )  # fmt: skip


def _ends() -> Object:
    """Guard the end of every exception, whoever wrote it: longer is another exception."""
    message = "the end of an exception can only come nearer; make another one"
    checks = [(_nearer(path), message) for path in (_EXPIRES_AT, "?spec.?expiresAt")]
    rule = {**_EXCEPTIONS, "operations": ["UPDATE"]}
    return _policy("kpolicy-exception-ends", rule, [*checks, _label_end()])


def _nearer(path: str) -> str:
    """Return the test that an instant, to which a path leads in both states, does not move back and does not go."""
    before, after = (f"{one}.{path}.orValue('')" for one in _STATES)
    return f"{before} == '' || ({after} != '' && timestamp({after}) <= timestamp({before}))"


def _label_end() -> tuple[str, str]:
    """Return the check of an end by label: what cannot be compared here stays as it is."""
    before, after = (f"{one}.metadata.?labels[?'{vocabulary.TTL_LABEL}'].orValue('')" for one in ("oldObject", "object"))  # fmt: skip
    both = f"[{before}, {after}]"
    length, date = "'^([0-9]+[hms])+$'", "'^[0-9]{4}-[0-9]{2}-[0-9]{2}$'"
    nearer = (
        f"({both}.all(e, e.matches({length})) && duration({after}) <= duration({before})) || "
        f"({both}.all(e, e.matches({date})) && "
        f"timestamp({after} + 'T00:00:00Z') <= timestamp({before} + 'T00:00:00Z'))"
    )
    return (
        f"{before} == '' || {after} == {before} || {nearer}",
        "the end of an exception by its label can only come nearer; delete the exception, or make another one",
    )


def _labels(namespace: str) -> Object:
    """Guard the label by which our account deletes an object, from whoever may write the object and not delete it.

    What our accounts write is what grants and rules say, whose authors were asked about it.
    """
    before, after = (
        f"{one}.metadata.?labels[?'{vocabulary.TTL_LABEL}'].orValue('')" for one in _STATES
    )
    return _deleting(
        "kpolicy-ttl-labels",
        f"{after} == '' || ({_UPDATE} && {before} == {after}) || {_MAY_DELETE}",
        f"only who may delete an object may set its label {vocabulary.TTL_LABEL}",
        vocabulary.TTL_LABEL,
        [account_user(namespace, job) for job in (Job.BACKGROUND, Job.GRANTS)],
    )


def _origins(namespace: str) -> Object:
    """Guard labels that say which rule made an object for what: synchronising deletes it by them, and carries the rule out anew."""
    before, after = (f"{one}.metadata.?labels.orValue({{}})" for one in _STATES)
    same = f"[{', '.join(map(repr, ORIGIN))}].all(k, {before}[?k] == {after}[?k])"
    asking = f"authorizer.group('{CLASSIC_GROUP}').resource('updaterequests').namespace('{namespace}').check('create').allowed()"
    return _deleting(
        "kpolicy-generate-labels",
        f"{after}[?'{vocabulary.MANAGED_BY}'].orValue('') != 'kyverno' || !('{POLICY_NAME}' in {after}) || ({_UPDATE} && {same}) || "
        f"({_MAY_DELETE} && {asking})",
        "only who may delete an object and create UpdateRequests in the engine's namespace may say which rule made it",
        POLICY_NAME,
        [account_user(namespace, Job.BACKGROUND)],
    )


_MAY_DELETE: Final = (
    "authorizer.group(request.resource.group).resource(request.resource.resource)"
    ".namespace(request.namespace).name(object.metadata.?name.orValue('')).check('delete').allowed()"
)


def _deleting(name: str, check: str, message: str, label: str, ours: Iterable[str]) -> Object:
    """Return a guard of objects with a label that makes us delete them, from all but accounts of ours."""
    accounts = ", ".join(f"'{one}'" for one in ours)
    made = _policy(
        name,
        # labels can be written through subresources, such as the status of a Pod
        _rule("*", "*", "*/*", "CREATE", "UPDATE"),
        [(check, message)],
        [{"name": "not-our-accounts", "expression": f"!({ME} in [{accounts}])"}],
    )
    selector = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
    made["spec"]["matchConstraints"]["objectSelector"] = selector
    return made


def _codes() -> Object:
    """Guard codes that people issue: in one's own name, for somebody else, and never changed."""
    return _policy(
        "kpolicy-codes",
        _rule(GROUP, VERSION, "onetimecodes", "CREATE", "UPDATE"),
        [
            (f"{_UPDATE} || object.spec.?issuedBy.orValue('') == {ME}", "spec.issuedBy must be who issues the code"),
            (f"{_UPDATE} || object.spec.?issuedByGroups.orValue([]).all(g, g in request.userInfo.groups)",
             "spec.issuedByGroups must be groups of who issues the code"),
            (f"{_UPDATE} || object.spec.user != {ME}", "nobody issues a code for oneself"),
            (f"{_UPDATE} || !{ME}.startsWith('system:serviceaccount:')", "a service account issues no codes"),
            *_acting(_UPDATE, "object.spec.user", "object.spec.binding.object.?namespace.orValue('')"),
            (f"{_UPDATE} || timestamp(object.spec.expiresAt) <= timestamp(object.metadata.creationTimestamp) + {_LONGEST}",
             "a code is good for seven days at most"),
            (f"{_CREATE} || object.spec == oldObject.spec", "a code cannot be changed; issue another one"),
        ],
    )  # fmt: skip


def _claims() -> Object:
    """Guard claims of codes: in one's own name and with one's own groups, and never changed."""
    return _policy(
        "kpolicy-code-claims",
        _rule(GROUP, VERSION, "codeclaims", "CREATE", "UPDATE"),
        [
            (f"{_UPDATE} || object.spec.user == {ME}", "spec.user must be who makes the claim"),
            (f"{_UPDATE} || {_CLAIMED}.all(g, g in request.userInfo.groups) && request.userInfo.groups.all(g, g in {_CLAIMED})",
             "spec.groups must be the groups of who makes the claim"),
            (f"{_CREATE} || object.spec == oldObject.spec", "a claim cannot be changed; make another one"),
        ],
    )  # fmt: skip


def _code_states(namespace: str) -> Object:
    """Guard what becomes of codes: people make them void, in their own name; all else is for the controllers to say."""
    state = {one: f"{one}.?status.?state.orValue('')" for one in ("object", "oldObject")}
    by = {one: f"{one}.?status.?voidedBy.orValue('')" for one in ("object", "oldObject")}
    told = " && ".join(
        f"object.?status.?{one} == oldObject.?status.?{one}" for one in ("usedBy", "usedAt", "uses")
    )
    voided = f"({state['object']} == 'void' && {state['oldObject']} != 'used')"
    return _policy(
        "kpolicy-code-states",
        _rule(GROUP, VERSION, "onetimecodes/status", "UPDATE"),
        [
            (f"{state['oldObject']} != 'void' || {state['object']} == 'void'", "a code that was made void stays so"),
            (f"{by['object']} == {by['oldObject']} || ({by['oldObject']} == '' && {by['object']} == {ME})",
             "status.voidedBy must be who makes the code void"),
            (f"{_is(namespace, Job.GRANTS)} || {state['object']} == {state['oldObject']} || {voided}",
             "the state of a code is for the controllers to write; people make one void that was not used"),
            (f"{_is(namespace, Job.GRANTS)} || ({told})", "how a code was used is for the controllers to write"),
        ],
    )  # fmt: skip


def _uses() -> Object:
    return _policy(
        "kpolicy-code-uses",
        _rule(GROUP, VERSION, "codeuses", "UPDATE"),
        [("object.spec == oldObject.spec", "the record of a use cannot be changed")],
    )


def _segments() -> Object:
    place = "int(r.seq) - int(oldObject.spec.records[0].seq)"
    # by their places, because looking for each among all costs the square of five hundred at every record
    grows = (
        "size(oldObject.spec.records) <= size(object.spec.records) && "
        f"oldObject.spec.records.all(r, object.spec.records[{place}] == r)"
    )
    return _policy(
        "kpolicy-audit-segments",
        _rule(GROUP, VERSION, "auditsegments", "UPDATE"),
        [
            ("!oldObject.spec.?sealed.orValue(false) || object.spec == oldObject.spec",
             "a sealed segment cannot be changed"),
            (grows, "records cannot be changed or removed"),
        ],
    )  # fmt: skip


def _rule(group: str, version: str, resources: str, *operations: str) -> Object:
    """Return the rule of a guard; several resources stand with spaces between them."""
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": resources.split(),
    }


def _policy(
    name: str, rule: Object, checks: Iterable[tuple[str, str]], conditions: Iterable[Object] = ()
) -> Object:
    spec: Object = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [
            {"expression": expression, "message": message, "reason": "Forbidden"}
            for expression, message in checks
        ],
    }
    if listed := list(conditions):
        spec["matchConditions"] = listed
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "annotations": {vocabulary.OWNER: "kpolicy"}},
        "spec": spec,
    }


def _bound(policy: Object) -> Object:
    name = policy["metadata"]["name"]
    return {
        **policy,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
