"""What exactly is wrong with an object, as a digest: what a code is for, so that nothing else passes with it.

A rule reports its first miss only, so the paths that it names do not say everything that is wrong. Therefore the whole body
of the object counts, and of its metadata what the rule looks at, wherever its first miss is; a rule that names no path may have
looked at all of it.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

import orjson

from engine.errors import LimitError
from engine.fields import at_path, part
from engine.lang.gotext import compact_json

from .binding import fingerprint
from .spelling import canonical

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from engine.model import Forgiven, Json, Object, Outcome, Rule

CODE_ANNOTATION: Final = "kpolicy.io/code"
MOST_CODES: Final = 8
HIDDEN: Final = "(hidden)"
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_BODY: Final = frozenset({"metadata", "status"})
_READABLE: Final = ("labels", "finalizers", "ownerReferences", "annotations")
_NOT_READ: Final = frozenset({CODE_ANNOTATION, _APPLIED})
_TOKEN_NAME: Final = b'"name":"kube-api-access-"'
_TOKEN_NAMES: Final = re.compile(
    rb'"name":"kube-api-access-(?<=[{,]"name":"kube-api-access-)(?:[^"\\]|\\.)*"'
)
"""Names of volumes for tokens in written JSON; no text can hold a quotation mark that is not led by a backslash.

What stands before is looked at last: a pattern that begins with a literal is searched for many times as fast.
"""


def carried_codes(obj: Object | None) -> tuple[str, ...]:
    """Return the texts that an object carries as codes, at most eight."""
    given = _given(obj)
    return tuple([text.strip() for text in given[:MOST_CODES] if text.strip()]) if given else ()


def _given(obj: Object | None) -> list[str]:
    given = part(obj, "metadata", "annotations").get(CODE_ANNOTATION)
    return given.split(",") if isinstance(given, str) else []


def without_codes(text: str, obj: Object) -> str:
    """Return a text for people in which no code stands that an object carries; a used one stays in it for good."""
    for one in filter(canonical, map(str.strip, _given(obj))):
        text = text.replace(one, HIDDEN)
    return text


def body_digest(obj: Object) -> str:
    """Return a digest of everything but metadata and status.

    The API server gives every Pod a volume for its token with a random name; it is counted by what it holds, not by its name.
    Raises LimitError for an object that is nested too deeply.
    """
    body = {key: value for key, value in obj.items() if key not in _NOT_BODY}
    try:
        written = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # what cannot be written as JSON on the wire: half a character, a number of more than 64 bits, too many levels
        written = compact_json(body).encode("utf-8", "surrogatepass")
    return hashlib.sha256(_TOKEN_NAMES.sub(_TOKEN_NAME, written)).hexdigest()


def violation_of(obj: Object, misses: Iterable[tuple[str, str]], read: Collection[str] = ()) -> str:
    """Return the fingerprint of what is wrong with an object, from (rule, path) of each miss; raises LimitError as `body_digest`.

    Of the metadata those parts count that the rules missed look at (`parts_read`).
    """
    metadata, whole = part(obj, "metadata"), None
    seen = {key: _shown(metadata, key) for key in read}
    listed: list[tuple[str, str, Json]] = [("", "body", body_digest(obj)), ("", "read", seen)]
    for rule, path in misses:
        value = None
        if path.startswith("/metadata"):
            value = at_path(obj, path)
        elif not path:
            value = whole = whole or {key: _shown(metadata, key) for key in _READABLE}
        listed.append((rule, path, value))
    return fingerprint(listed, ())


def parts_read(rules: Iterable[Rule]) -> tuple[str, ...]:
    """Return the parts of metadata that any of some rules looks at: for `violation_of`, and the same for as long as the rules are."""
    texts = [_texts_of(rule) for rule in rules]
    return tuple(key for key in _READABLE if any(_reads(one, key[:-1]) for one in texts))


def _shown(metadata: Object, key: str) -> Json:
    """Return a part of metadata without what carries codes or repeats the object."""
    if key != "annotations":
        return metadata.get(key)
    given = part(metadata, key)
    return {name: value for name, value in given.items() if name not in _NOT_READ}


# Whether an update leaves a violation as it was: what may be forgiven where the rule's exceptions are to be asked for.
#
# A rule reports its first miss only. So everything has to stay but what no violation of this rule can lie in: status, and of
# labels, annotations, finalizers, owners and the number of replicas those that the rule does not look at. Otherwise one admitted
# violation would let all later ones of the same object through. What is being deleted only loses finalizers.

_UNRELATED: Final = frozenset({"match", "exclude", "name"})
_UNREAD: Final = ("label", "annotation", "finalizer", "ownerReference", "replicas")
_WHOLE: Final = re.compile(
    r"\b(?:request|object|oldObject|metadata|spec)\b(?!\s*\.\s*\\?[\"A-Za-z_])"
)
"""A part of the object that an expression takes as a whole, so that nothing of it can be said not to matter."""


def is_left_as_it_was(before: Object, after: Object, forgiven: Forgiven, rule: Rule | None) -> bool:
    """Tell whether an update keeps what is wrong with an object; an unknown rule may look at everything.

    What is nested too deeply to be compared is not known to be the same.
    """
    texts = None if rule is None else _texts_of(rule)
    unread = {word for word in _UNREAD if not _reads(texts, word)}
    if "deletionTimestamp" in part(before, "metadata"):
        unread.add("finalizer")
    try:
        old = _violation(before, forgiven.before, unread)
        return old == _violation(after, forgiven.now, unread)
    except LimitError:
        return False


def _texts_of(rule: Rule) -> tuple[tuple[str, bool], ...]:
    return tuple(_texts({key: one for key, one in rule.raw.items() if key not in _UNRELATED}))


def _texts(part: Any) -> Iterator[tuple[str, bool]]:
    """Yield every text that can decide, and whether it can be an expression: a key of a pattern is none."""
    if isinstance(part, dict):
        for key, item in part.items():
            if key != "message":
                yield key, "{{" in key
                yield from _texts(item)
    elif isinstance(part, list):
        for item in part:
            yield from _texts(item)
    elif isinstance(part, str):
        yield part, True


def _reads(texts: Iterable[tuple[str, bool]] | None, word: str) -> bool:
    return texts is None or any(
        word in text or (is_expression and _WHOLE.search(text) is not None)
        for text, is_expression in texts
    )


def _violation(obj: Object, failures: Iterable[Outcome], unread: set[str]) -> str:
    # the miss without a path stands for the labels and annotations that are left
    misses = [("", ""), *(("", one.path) for one in failures)]
    return violation_of(_without(obj, unread), misses)


def _without(obj: Object, unread: set[str]) -> Object:
    """Return an object without what a rule does not look at."""
    made = dict(obj)
    spec, metadata = obj.get("spec"), obj.get("metadata")
    if isinstance(spec, dict):
        made["spec"] = _left(spec, unread)
    if isinstance(metadata, dict):
        made["metadata"] = _left(metadata, {f"{word}s" for word in unread})
    return made


def _left(part: dict[str, Any], unread: set[str]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in unread}
