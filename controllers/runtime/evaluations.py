"""Evaluations as text, for the way from a child that evaluated back to its parent.

Written out field by field and read the same way: what comes back can hold values only, whatever the child has become.
"""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from engine.evaluate import Evaluation, Lookup, lookups
from engine.model import Outcome, Review, RuleResult, RuleType, Status, Target
from engine.model.result import Forgiven, ImageFinding

_LOOKUPS: Final = {
    kind.__name__: kind
    for kind in (
        lookups.ConfigMapLookup,
        lookups.ApiCallLookup,
        lookups.ServiceLookup,
        lookups.ImageLookup,
        lookups.SignatureLookup,
        lookups.TrustLookup,
        lookups.GlobalLookup,
        lookups.ObjectLookup,
        lookups.ListLookup,
        lookups.HostLookup,
    )
}


def write(found: Evaluation, review: Review) -> bytes:
    """Return an evaluation of `review` as text; an object that is as it was is not written again."""
    patched: Any = None
    if found.patched is not review.target:
        patched = {"value": found.patched}
    results = [_result(one) for one in found.results]
    missing = [[one.__class__.__name__, _fields(one)] for one in found.missing]
    return json.dumps({"results": results, "missing": missing, "patched": patched}).encode()


def read(text: bytes, review: Review) -> Evaluation:
    """Return the evaluation in a text; raises ValueError, KeyError or TypeError for one that holds none."""
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError:
        # numbers that are none, and halves of surrogate pairs
        given = json.loads(text)
    patched = given["patched"]
    found = Evaluation(review.target if patched is None else patched["value"])
    found.results = [_read_result(one) for one in given["results"]]
    found.missing = [_read_lookup(name, fields) for name, fields in given["missing"]]
    return found


def _result(one: RuleResult) -> dict[str, Any]:
    made = _fields(one)
    made["properties"] = dict(one.properties)
    made["targets"] = [_fields(target) for target in one.targets]
    made["images"] = [_fields(image) for image in one.images]
    if one.forgiven is not None:
        made["forgiven"] = [_outcomes(one.forgiven.now), _outcomes(one.forgiven.before)]
    return made


def _read_result(given: dict[str, Any]) -> RuleResult:
    forgiven = given["forgiven"]
    changed: dict[str, Any] = {
        "type": RuleType(given["type"]),
        "status": Status(given["status"]),
        "exceptions": tuple(given["exceptions"]),
        "generated": tuple(given["generated"]),
        "targets": tuple(Target(**target) for target in given["targets"]),
        "images": tuple(ImageFinding(**image) for image in given["images"]),
        "forgiven": None if forgiven is None else Forgiven(*map(_read_outcomes, forgiven)),
    }
    return RuleResult(**{**given, **changed})


def _outcomes(given: tuple[Outcome, ...]) -> list[dict[str, Any]]:
    return [{**_fields(one), "properties": dict(one.properties)} for one in given]


def _read_outcomes(given: list[dict[str, Any]]) -> tuple[Outcome, ...]:
    return tuple(Outcome(**{**one, "status": Status(one["status"])}) for one in given)


def _fields(one: Any) -> dict[str, Any]:
    """Return the fields of a record by their names."""
    return {name: getattr(one, name) for name in one.__match_args__}


def _read_lookup(name: str, fields: dict[str, Any]) -> Lookup:
    made: Lookup = _LOOKUPS[name](**{key: _frozen(value) for key, value in fields.items()})
    return made


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
