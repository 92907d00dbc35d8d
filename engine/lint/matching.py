"""Match and exclude blocks that mean nothing, or not what their author thinks (rows A-30 to A-39, A-25, A-91)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.lang import wildcard
from engine.match import key_error, parse_kind, value_error
from engine.model.resources import CLUSTER_SCOPED
from engine.reach import GUARDED_GROUPS, OWN_GROUP
from engine.record import record

from .findings import Finding, error, invalid, warning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.model import Block, Json, Policy, Rule

USER_FIELDS = ("subjects", "roles", "clusterRoles")
_SUBJECT_KINDS = ("User", "Group", "ServiceAccount")


@record
class Entry:
    """One entry of a block with the path of it."""

    path: str
    block: Block

    @property
    def resources(self) -> Block:
        """Its resource filters, empty where there are none."""
        found: Block = self.block.get("resources") or {}
        return found


def entries(block: Block, path: str) -> list[Entry]:
    """Return the entries of a match or exclude block: those of any and all, or the legacy block itself."""
    listed = [
        Entry(f"{path}.{name}[{index}]", entry or {})
        for name in ("any", "all")
        for index, entry in enumerate(block.get(name) or ())
    ]
    return listed or [Entry(path, block)]


def check_matching(rule: Rule, path: str, policy: Policy) -> Iterator[Finding]:
    """Yield what is wrong with match and exclude of one rule."""
    match, exclude = f"{path}.match", f"{path}.exclude"
    yield from check_block(rule.match, match)
    yield from check_presence(rule.match, match)
    if rule.raw.get("exclude") is not None:
        yield from check_block(rule.exclude, exclude)
        if _is_empty_set(rule):
            yield error(path, "Rule is matching an empty set")
    for entry in entries(rule.match, match):
        yield from _check_reach(entry, rule, policy)
        yield from _check_every_kind(entry, rule, policy)
    for entry in (*entries(rule.match, match), *entries(rule.exclude, exclude)):
        if policy.kind == "Policy":
            yield from check_scope(entry)
        yield from _check_background(entry, policy)


def check_block(block: Block, path: str) -> Iterator[Finding]:
    """Yield what is wrong with the entries of a block, in any kind of document."""
    if block.get("any") and block.get("all"):
        yield error(path, "Invalid value: Can't specify any and all together")
    for entry in entries(block, path):
        yield from check_selector(entry.resources.get("selector"), f"{entry.path}.selector")
        if entry.resources.get("name") and entry.resources.get("names"):
            text = "Both name and names can not be specified together"
            yield invalid(f"{entry.path}.name", entry.resources["name"], text)
        yield from _check_users(entry)
        for kind in entry.resources.get("kinds") or ():
            if parse_kind(kind).subresource in ("scale", "status"):
                yield warning(
                    entry.path, f"matching on the {parse_kind(kind).subresource} subresource"
                )


def check_presence(block: Block, path: str) -> Iterator[Finding]:
    """Yield an error where an entry of a match names no kinds."""
    for entry in entries(block, path):
        if not entry.resources:
            yield error(f"{path}.resources", "match resources not specified")
        elif not entry.resources.get("kinds"):
            yield error(
                entry.path,
                "at least one element must be specified in a kind block, the kind attribute is mandatory"
                " when working with the resources element",
            )


def check_no_users(block: Block, path: str) -> Iterator[Finding]:
    """Yield an error for every user filter of a block that must not have any (rows X-01, C-01)."""
    for entry, name in user_fields(block, path):
        yield error(f"{entry.path}.{name}", "Forbidden: Usage of user info is forbidden")


def user_fields(block: Block, path: str) -> list[tuple[Entry, str]]:
    """Return the user filters of a block with their entries."""
    return [
        (entry, name)
        for entry in entries(block, path)
        for name in USER_FIELDS
        if entry.block.get(name)
    ]


def _check_users(entry: Entry) -> Iterator[Finding]:
    for index, subject in enumerate(entry.block.get("subjects") or ()):
        at = f"{entry.path}.subjects[{index}]"
        kind = subject.get("kind")
        if kind not in _SUBJECT_KINDS:
            text = "kind must be 'User', 'Group', or 'ServiceAccount'"
            yield invalid(f"{at}.kind", kind or "", text)
        if kind == "ServiceAccount" and not subject.get("namespace"):
            text = "Required value: namespace is required when Kind is ServiceAccount"
            yield error(f"{at}.namespace", text)
        if not subject.get("name"):
            yield error(f"{at}.name", "Required value: name is required")
    for index, role in enumerate(entry.block.get("roles") or ()):
        if len(role.split(":")) != 2:
            text = "Role is expected to be in namespace:name format"
            yield invalid(f"{entry.path}.roles[{index}]", role, text)


def check_scope(entry: Entry) -> Iterator[Finding]:
    """Keep a namespaced policy to its own namespace (row A-25)."""
    if entry.resources.get("namespaces"):
        text = "Forbidden: Filtering namespaces not allowed in namespaced policies"
        yield error(f"{entry.path}.namespaces", text)
    for kind in entry.resources.get("kinds") or ():
        if parse_kind(kind).kind in CLUSTER_SCOPED:
            text = f"Forbidden: cluster-scoped kind `{kind}` not allowed in namespaced policies"
            yield error(f"{entry.path}.kinds", text)


def _check_reach(entry: Entry, rule: Rule, policy: Policy) -> Iterator[Finding]:
    """Warn of kinds that the rule will never concern, or never change."""
    for kind in entry.resources.get("kinds") or ():
        group = parse_kind(kind).group
        if policy.kind == "Policy" and group in GUARDED_GROUPS:
            text = f"`{kind}` is out of the reach of namespaced policies: the rule does not apply to it"
            yield warning(f"{entry.path}.kinds", text)
        elif rule.mutate and not rule.mutate.get("targets") and group == OWN_GROUP:
            text = f"`{kind}` is out of the reach of policies: the rule does not change it"
            yield warning(f"{entry.path}.kinds", text)


def _check_every_kind(entry: Entry, rule: Rule, policy: Policy) -> Iterator[Finding]:
    """Hold a rule for all kinds at once to what all have, and to requests: no scan could read every object (row A-32)."""
    kinds = entry.resources.get("kinds") or ()
    if "*" not in kinds:
        return
    if policy.background:
        yield error(
            entry.path,
            "wildcard policy not allowed in background mode. Set spec.background=false to disable background mode for"
            " this policy rule ",
        )
    if len(kinds) > 1:
        yield error(entry.path, "wildcard policy can not deal with more than one kind")
    validate, mutate = rule.validate or {}, rule.mutate or {}
    if rule.generate or rule.verify_images or validate.get("foreach"):
        yield error(entry.path, "wildcard policy does not support rule type")
    listed = validate.get("anyPattern")
    trees = (
        validate.get("pattern"),
        mutate.get("patchStrategicMerge"),
        *(listed if isinstance(listed, list) else ()),
    )
    if any(isinstance(one, dict) and one.keys() - {"metadata"} for one in trees):
        yield error(
            entry.path,
            "policy can only deal with the metadata field of the resource if the rule does not match any kind",
        )


def _check_background(entry: Entry, policy: Policy) -> Iterator[Finding]:
    """Refuse user filters where a background scan would have to evaluate them (row A-91)."""
    if not policy.background:
        return
    for name in USER_FIELDS:
        if entry.block.get(name):
            inner = entry.path.replace("[", "/").replace("]", "").replace(".", "/")
            yield error(
                entry.path, background_text(f"invalid variable used at path: {inner}/{name}")
            )


def background_text(inner: str) -> str:
    """Write the refusal of what a background scan cannot know (row A-91)."""
    return (
        "only select variables are allowed in background mode. Set spec.background=false to disable background mode for"
        f" this policy rule: {inner} "
    )


def _is_empty_set(rule: Rule) -> bool:
    """Tell whether nothing can be left after exclude.

    Upstream also refuses every legacy match beside an `exclude.any`; that is not copied, because such a rule means
    something and people have it.
    """
    match, exclude = rule.match, rule.exclude
    if exclude.get("all") or match.get("all"):
        return False
    matched, excluded = entries(match, ""), entries(exclude, "")
    if not any(entry.block.get(name) for entry in excluded for name in ("resources", *USER_FIELDS)):
        return not exclude.get("any")
    if match.get("any") and exclude.get("any"):
        return any(left.block == right.block for left in matched for right in excluded)
    if match.get("any") or exclude.get("any"):
        return False
    return _covers(match, exclude)


def _covers(match: Block, exclude: Block) -> bool:
    """Tell whether a legacy exclude has every object that the legacy match has."""
    wanted = {**(match.get("resources") or {}), **{n: match.get(n) for n in USER_FIELDS}}
    given = {**(exclude.get("resources") or {}), **{n: exclude.get(n) for n in USER_FIELDS}}
    return all(_holds(wanted.get(name), value) for name, value in given.items() if value)


def _holds(wanted: Json, given: Json) -> bool:
    if isinstance(wanted, list) and isinstance(given, list):
        return bool(wanted) and all(item in given for item in wanted)
    return bool(wanted == given)


# Label selectors that Kubernetes would refuse, with the API server's words (rows ).
#
# At evaluation such a selector matches nothing; a policy with one is refused, so that nobody relies on it.

_SIZES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
_SET_TEXTS = {
    True: "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
    False: "values: Invalid value: {}: values set must be empty for exists and does not exist",
}


def check_selector(selector: Block | None, path: str) -> Iterator[Finding]:
    """Yield what is wrong with a `selector`; an empty one is wrong because it would select everything."""
    if selector is None:
        return
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield error(path, "Invalid value: {}: The requirements are not specified in selector")
        return
    yield from check_requirements(selector, path, clean=_without_wildcards)


def check_requirements(
    selector: Block, path: str, *, clean: Callable[[str], str] = str
) -> Iterator[Finding]:
    """Yield which parts of a `selector` the API server refuses; of its pairs both texts are taken as `clean` makes them."""
    shown = _as_go_writes(selector)
    for key, value in (selector.get("matchLabels") or {}).items():
        if why := _pair_error(clean(str(key)), clean(str(value or ""))):
            yield error(path, f"Invalid value: {shown}: {why}")
    for entry in selector.get("matchExpressions") or ():
        if why := _expression_error(entry):
            yield error(path, f"Invalid value: {shown}: {why}")


def _pair_error(key: str, value: str) -> str:
    if why := key_error(key):
        return f'key: Invalid value: "{key}": {why}'
    if why := value_error(value):
        return f'values[0][{key}]: Invalid value: "{value}": {why}'
    return ""


def _without_wildcards(text: str) -> str:
    """Return a text with `0` for wildcards, as upstream replaces them."""
    return text.replace("*", "0").replace("?", "0") if wildcard.has_wildcard(text) else text


def _expression_error(entry: Block) -> str:
    operator, values = entry.get("operator") or "", entry.get("values") or []
    key = entry.get("key") or ""
    if operator not in _SIZES:
        return f'"{operator}" is not a valid label selector operator'
    if bool(values) is not _SIZES[operator]:
        return _SET_TEXTS[_SIZES[operator]].format(_json_text(values))
    if why := key_error(key):
        return f'key: Invalid value: "{key}": {why}'
    for index, value in enumerate(values):
        if why := value_error(value):
            return f'values[{index}][{key}]: Invalid value: "{value}": {why}'
    return ""


def _as_go_writes(selector: Block) -> str:
    """Write a selector as Go serialises it: fields in their order, empty ones left out."""
    fields = {name: selector.get(name) for name in ("matchLabels", "matchExpressions")}
    if isinstance(listed := fields["matchExpressions"], list):
        names = ("key", "operator", "values")
        fields["matchExpressions"] = [
            {name: entry[name] for name in names if entry.get(name)} for entry in listed
        ]
    kept = {name: value for name, value in fields.items() if value}
    return _json_text(kept, separators=(",", ":"))


def _json_text(value: Json, **form: Any) -> str:
    import json  # here: most selectors are as they should be

    return json.dumps(value, **form)
