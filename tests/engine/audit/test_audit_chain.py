"""An audit trail shows each kind of tampering, and names the record."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from engine.audit import Checkpoint, Segment, append, seal, segment_of, verify
from engine.errors import PolicyError

KEY = b"s" * 32


def trail(count=9, each=3):
    """Return segments of `each` records and the head of the last one."""
    records, head = [], None
    for number in range(count):
        entry = append({"actor": "ada", "verb": "approve", "reason": f"r{number}"}, head)
        head = Checkpoint(entry["seq"], entry["hash"])
        records.append(entry)
    groups = [records[at : at + each] for at in range(0, count, each)]
    return [sealed(f"audit-{number}", group) for number, group in enumerate(groups)], head


def sealed(name, records):
    return Segment(name, tuple(records), seal(name, records, KEY))


def kinds(segments, *checkpoints, key=KEY):
    return [(one.kind, one.seq) for one in verify(segments, checkpoints, key)]


def test_a_whole_trail_is_whole_in_any_order():
    segments, head = trail()

    assert kinds(segments, head) == []
    assert kinds(segments[::-1], head) == []
    assert kinds([]) == []


def test_an_edited_record_is_named_even_without_the_key():
    segments, head = trail()
    first, second, third = segments[1].records
    changed = Segment("audit-1", (first, {**second, "actor": "eve"}, third), segments[1].mac)

    assert kinds([segments[0], changed, segments[2]], head, key=None) == [("edited", 5)]


def test_an_edited_record_with_a_new_hash_breaks_the_next():
    segments, _ = trail()
    first, _, third = segments[1].records
    forged = append({"actor": "eve", "verb": "approve"}, Checkpoint(4, first["hash"]))
    changed = Segment("audit-1", (first, forged, third), segments[1].mac)

    assert kinds([segments[0], changed, segments[2]], key=None) == [("edited", 6)]


def test_a_deleted_record_and_a_deleted_segment_are_named():
    segments, head = trail()
    first, _, third = segments[1].records
    gap = Segment("audit-1", (first, third), segments[1].mac)

    assert kinds([segments[0], gap, segments[2]], head, key=None) == [("deleted", 5)]
    assert kinds([segments[0], segments[2]], head) == [("deleted", 4)]


def test_an_inserted_record_is_named():
    segments, _ = trail()
    first, second, third = segments[1].records
    extra = append({"actor": "eve"}, Checkpoint(4, first["hash"]))
    changed = Segment("audit-1", (first, extra, second, third), segments[1].mac)

    assert ("moved", 5) in kinds([segments[0], changed, segments[2]], key=None)


def test_swapped_records_are_named():
    segments, _ = trail()
    first, second, third = segments[1].records
    changed = Segment("audit-1", (second, first, third), segments[1].mac)

    assert {kind for kind, _ in kinds([segments[0], changed, segments[2]], key=None)} >= {"moved"}


def test_a_cut_tail_shows_only_by_a_checkpoint():
    segments, head = trail()

    assert kinds(segments[:2]) == []
    assert kinds(segments[:2], head) == [("cut", 6)]


def test_an_older_copy_that_was_put_back_and_went_on_shows_by_a_checkpoint():
    segments, head = trail()
    old_head = segments[1].head
    other, records = old_head, []
    for number in range(3):
        entry = append({"actor": "eve", "reason": f"other {number}"}, other)
        other = Checkpoint(entry["seq"], entry["hash"])
        records.append(entry)

    assert kinds([*segments[:2], sealed("audit-2", records)], head) == [("rewritten", 9)]


def test_a_chain_computed_anew_without_the_key_has_no_seal():
    segments, _ = trail(3)
    forged = append({"actor": "eve"}, None)

    assert kinds([Segment("audit-0", (forged,), segments[0].mac)]) == [("unsealed", 1)]


def test_fifty_thousand_records_are_checked():
    segments, head = trail(50_000, 1_000)

    assert kinds(segments, head) == []


def test_an_object_without_records_is_refused():
    with pytest.raises(PolicyError, match="auditsegment/x"):
        segment_of({"metadata": {"name": "x"}, "spec": {"records": "none"}})
    obj = {"metadata": {"name": "x"}, "spec": {"records": [{"seq": 1}], "mac": "m"}}
    assert segment_of(obj) == Segment("x", ({"seq": 1},), "m")


def test_a_seal_is_what_it_always_was_so_that_trails_of_before_stay_whole():
    records = [append({"actor": "ada"}, None)]
    records.append(append({"actor": "bob"}, Checkpoint(records[0]["seq"], records[0]["hash"])))

    assert [one["seq"] for one in records] == [1, 2]
    assert seal("audit-1", records, KEY) == expected_seal("audit-1", records)


def expected_seal(name, records):
    text = f"{name}\n1\n2\n{records[-1]['hash']}"
    return hmac.new(KEY, text.encode(), hashlib.sha256).hexdigest()


def test_a_trail_of_which_nothing_is_left_is_told_by_what_a_checkpoint_knows():
    _, head = trail()

    [found] = verify([], (head,), KEY)

    assert (found.kind, found.seq) == ("cut", 0)
    assert found.message == "the trail ends at record 0, a checkpoint knows record 9"


def test_what_is_missing_is_told_as_one_record_or_as_from_which_to_which():
    [segment], _ = trail(9, 9)
    one = sealed("audit-0", [*segment.records[:2], *segment.records[3:]])
    three = sealed("audit-0", [*segment.records[:2], *segment.records[5:]])

    assert verify([one], (), KEY)[0].message == "record 3 is missing before 4"
    assert verify([three], (), KEY)[0].message == "record 3 to 5 is missing before 6"


def test_a_record_is_hashed_with_the_one_before_as_it_always_was():
    first = append({"actor": "ada"}, None)
    second = append({"actor": "bob"}, Checkpoint(1, first["hash"]))

    for entry, before in ((first, "0" * 64), (second, first["hash"])):
        text = f'{before}\n{{"actor":"{entry["actor"]}","seq":{entry["seq"]}}}'
        assert entry["hash"] == hashlib.sha256(text.encode()).hexdigest()


def test_a_record_of_text_that_no_encoding_has_is_hashed_too():
    after = [Checkpoint(1, odd) for odd in ("\ud800", "\ud801")]

    assert (
        append({"actor": "\ud800"}, after[0])["hash"]
        != append({"actor": "\ud800"}, after[1])["hash"]
    )
