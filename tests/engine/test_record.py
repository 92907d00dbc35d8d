"""Records behave as the frozen dataclasses that they are written as."""

from __future__ import annotations

import dataclasses
import pickle
from functools import cached_property

import pytest

from engine.record import field, record, replace


def shout(text: str) -> str:
    return text.upper()


@record
class Point:
    x: int
    y: int = 2
    marks: list[str] = field(default_factory=list)

    @cached_property
    def total(self) -> int:
        return self.x + self.y


@record
class Say:
    how: object = shout


@record
class Single:
    value: object


@record
class Nothing:
    pass


def test_values_are_given_by_position_or_by_name():
    assert (Point(1, 5).x, Point(1, 5).y) == (1, 5)
    assert (Point(y=5, x=1).x, Point(y=5, x=1).y) == (1, 5)
    assert Point(1).y == 2


def test_a_default_from_a_factory_is_never_shared():
    first, second = Point(1), Point(1)
    first.marks.append("a")

    assert second.marks == []


def test_a_default_that_is_a_function_stays_a_function():
    assert Say().how("x") == "X"


@pytest.mark.parametrize(
    ("given", "named"),
    [((), {}), ((1, 2, [], 4), {}), ((1,), {"x": 2}), ((1,), {"z": 2}), ((), {"y": 1})],
    ids=["missing", "too many", "twice", "unknown", "missing beside given"],
)
def test_a_call_that_does_not_fit_the_fields_is_refused(given, named):
    with pytest.raises(TypeError, match="Point"):
        Point(*given, **named)


def test_no_field_can_be_set_or_deleted():
    point = Point(1)
    with pytest.raises(AttributeError, match="cannot change field"):
        point.x = 2  # type: ignore[misc] - what is tested
    with pytest.raises(AttributeError):
        del point.x

    assert point.x == 1


def test_equality_goes_by_class_and_fields_whether_given_or_default():
    assert Point(1) == Point(1, 2, [])
    assert Point(1) != Point(2)
    assert Single(1) != Single(2)
    assert Nothing() == Nothing()
    assert Single(1) != 1
    assert Single(None) != Nothing()


def test_hash_goes_with_equality():
    assert hash(Say()) == hash(Say(shout))
    assert len({Single(1), Single(1), Single(2)}) == 2


def test_cached_properties_are_worked_out_once_and_do_not_count_as_fields():
    point = Point(1)

    assert point.total == 3
    assert point == Point(1)
    assert "total" not in repr(point)


def test_replace_changes_the_named_fields_only():
    assert replace(Point(1, 5), x=3) == Point(3, 5)
    assert dataclasses.replace(Point(1, 5), x=3) == Point(3, 5)
    with pytest.raises(TypeError):
        replace(Point(1), z=3)


def test_records_are_seen_as_dataclasses_and_can_be_pickled():
    assert [each.name for each in dataclasses.fields(Point)] == ["x", "y", "marks"]
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 2, "marks": []}
    assert pickle.loads(pickle.dumps(Point(1, 5))) == Point(1, 5)
    assert repr(Point(1)) == "Point(x=1, y=2, marks=[])"


def test_match_statements_take_records_apart():
    match Point(1, 5):
        case Point(x, y):
            assert (x, y) == (1, 5)
