"""Evaluations that take long: cut off in place, finished in a child, killed there, and paid for by their own tenant."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from controllers.runtime import children, evaluating
from controllers.runtime.children import in_child
from controllers.runtime.evaluating import CAPACITY, FLOOR, REFILL, Allowances, BoundedEvaluator
from controllers.runtime.slices import TICK, Slice, SliceOver
from engine.errors import LimitError
from engine.evaluate import Evaluation, Inputs, PolicySet
from engine.evaluate.lookups import ConfigMapLookup, ServiceLookup
from engine.manifests.chain import verify_chain
from engine.manifests.trust import Authority
from engine.model import Outcome, Review, RuleResult, RuleType, Status, Target, UserInfo
from engine.model.result import Forgiven, ImageFinding
from tests.engine.manifests.private_sigstore import SIGNED_AT, PrivateSigstore, new_key

if TYPE_CHECKING:
    from collections.abc import Callable

NOTHING = PolicySet()


class Hand:
    """A clock that moves by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def review(namespace: str = "shop", user: str = "") -> Review:
    metadata = {"name": "c", **({"namespace": namespace} if namespace else {})}
    return Review({"kind": "ConfigMap", "metadata": metadata}, user=UserInfo(user))


def spin(*_: object, **__: object) -> Evaluation:
    for _number in count():
        pass
    raise AssertionError


def for_some_ticks(number: float):
    def work(_policies: PolicySet, of: Review, *_: object, **__: object) -> Evaluation:
        end = time.process_time() + number * TICK
        while time.process_time() < end:
            pass
        return Evaluation(of.target)

    return work


def test_what_takes_longer_than_its_slice_is_cut_off_where_it_stands() -> None:
    piece = Slice(2)
    began = time.process_time()
    with pytest.raises(SliceOver):
        piece.run(spin)

    assert piece.seconds == 2 * TICK
    assert time.process_time() - began < 1.0
    assert Slice(2).run(lambda: 7) == 7


def test_nothing_is_cut_off_outside_of_a_slice() -> None:
    Slice(1).run(lambda: None)
    end = time.process_time() + 5 * TICK
    while time.process_time() < end:
        pass
    assert Slice(5).run(lambda: "still whole") == "still whole"


def test_no_handler_of_errors_in_the_work_can_keep_it_from_being_cut_off() -> None:
    def stubborn() -> None:
        while True:
            try:
                spin()
            except Exception:
                continue

    with pytest.raises(SliceOver):
        Slice(2).run(stubborn)


def test_a_module_is_not_cut_off_while_it_is_imported(tmp_path, monkeypatch) -> None:
    lines = ["import time", "end = time.process_time() + 0.06", "while time.process_time() < end:", "    pass", "WHOLE = True"]  # fmt: skip
    (tmp_path / "slow_to_import.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)

    def work() -> None:
        import slow_to_import  # type: ignore[import-not-found] # - written above

        assert slow_to_import.WHOLE
        spin()

    with pytest.raises(SliceOver):
        Slice(2).run(work)
    import slow_to_import  # type: ignore[import-not-found] # - as above

    assert slow_to_import.WHOLE


class Lingering:
    """What takes six ticks to be thrown away."""

    def __del__(self) -> None:
        for_some_ticks(6)(NOTHING, review())


def linger(phase: str, _figures: object) -> None:
    """Let each collection begin with six ticks of work."""
    if phase == "start":
        for_some_ticks(6)(NOTHING, review())


def collect() -> None:
    gc.callbacks.append(linger)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(linger)


class Slow(set[object]):
    """A set that takes six ticks to let something go."""

    def discard(self, member: object) -> None:
        for_some_ticks(6)(NOTHING, review())
        super().discard(member)


def forget() -> None:
    """Throw away what a set remembers weakly."""
    held: WeakSet[Hand] = WeakSet()
    held.data = Slow()  # type: ignore[attr-defined] # - what it keeps its references in
    held.add(Hand())


@pytest.mark.parametrize("tidy_up", [Lingering, collect, forget])
def test_nothing_is_cut_off_where_what_is_raised_would_be_dropped(monkeypatch, tidy_up) -> None:
    dropped: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)

    def work() -> None:
        tidy_up()
        spin()

    with pytest.raises(SliceOver):
        Slice(2).run(work)
    assert dropped == []


def reaches(number: int, work: Callable[[], None]) -> bool:
    """Do some work in a slice whose time is over at a call by its number; tell whether there were so many. Raises SliceOver."""
    piece, calls = Slice(1000), count(1)

    def tick(_frame: object, event: str, _given: object) -> None:
        if event in ("call", "c_return") and next(calls) == number:
            sys.setprofile(None)
            piece.ticks = piece.most
            signal.raise_signal(signal.SIGPROF)

    def watched() -> None:
        sys.setprofile(tick)
        try:
            work()
        finally:
            sys.setprofile(None)

    piece.run(watched)
    return next(calls) > number


def test_a_chain_of_certificates_is_never_refused_because_the_time_is_over() -> None:
    """Its library is written in Rust, calls Python, and takes what is raised there for a signature that is wrong."""
    private = PrivateSigstore()
    leaf = private.issue(new_key().public_key())
    trusted = Authority(
        anchors=(private.root.public_bytes(Encoding.DER),),
        intermediates=(private.middle.public_bytes(Encoding.DER),),
    )

    def verify() -> None:
        assert verify_chain(leaf, [], [trusted], SIGNED_AT) == private.middle

    cut = 0
    for number in count(1):
        try:
            if not reaches(number, verify):
                break
        except SliceOver:
            cut += 1
    assert number > 40
    assert cut > 10


def test_an_allowance_runs_out_comes_back_and_is_each_tenant_s_own() -> None:
    now = Hand()
    allowances = Allowances(now)
    assert allowances.are_untouched
    allowances.take("a", CAPACITY + 1)
    assert allowances.left("a") == -1
    assert allowances.left("b") == CAPACITY
    now.now = 4.0
    assert allowances.left("a") == -1 + 4 * REFILL
    now.now = 1000.0
    assert allowances.left("a") == CAPACITY
    assert allowances.are_untouched


def test_allowances_do_not_fill_the_memory() -> None:
    now = Hand()
    allowances = Allowances(now)
    for number in range(5000):
        allowances.take(f"n{number}", 1.0 if number else 3.0)
    assert len(allowances._left) <= 4096
    assert allowances.left("n0") == 0.0


def test_an_evaluation_that_ends_in_time_is_done_in_place_and_costs_nothing(monkeypatch) -> None:
    monkeypatch.setattr(evaluating, "evaluate", for_some_ticks(0))
    bounds = BoundedEvaluator(Hand())
    assert bounds.attempt(NOTHING, review(), Inputs()) is not None
    assert bounds._allowances.are_untouched


def test_one_that_does_not_is_finished_in_a_child(monkeypatch) -> None:
    me = os.getpid()

    def there(policies: PolicySet, of: Review, *_: object, **__: object) -> Evaluation:
        if os.getpid() == me:
            spin()
        found = Evaluation(of.target)
        found.results = [RuleResult("p", "r", RuleType.VALIDATION, Status.FAIL, str(os.getpid()))]
        return found

    monkeypatch.setattr(evaluating, "evaluate", there)

    async def go() -> None:
        bounds = BoundedEvaluator(most=1)
        assert bounds.attempt(NOTHING, review(), Inputs()) is None
        found = await bounds.finish(NOTHING, review(), Inputs())
        assert found.results[0].message != str(me)
        assert 0 < CAPACITY - bounds._allowances.left("shop") < CAPACITY

    asyncio.run(go())


def test_one_that_never_ends_is_killed_and_the_error_says_so(monkeypatch) -> None:
    monkeypatch.setattr(children, "WALL_SECONDS", 0.3)
    monkeypatch.setattr(evaluating, "evaluate", spin)

    async def go() -> None:
        with pytest.raises(LimitError, match="take too much time or memory"):
            await BoundedEvaluator().evaluate(NOTHING, review(), Inputs())

    asyncio.run(go())
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_tenant_without_allowance_is_refused_at_once_and_others_are_not(monkeypatch) -> None:
    now = Hand()
    bounds = BoundedEvaluator(now)
    bounds._allowances.take("shop", CAPACITY - FLOOR)
    monkeypatch.setattr(evaluating, "evaluate", for_some_ticks(0))
    with pytest.raises(LimitError, match="namespace `shop` have taken more time"):
        bounds.attempt(NOTHING, review(), Inputs())
    assert bounds.attempt(NOTHING, review("bank"), Inputs()) is not None
    now.now = 4.5
    assert bounds.attempt(NOTHING, review(), Inputs()) is not None


def test_a_tenant_in_debt_gets_its_ordinary_reviews_decided_and_no_child(monkeypatch) -> None:
    bounds = BoundedEvaluator(Hand())
    bounds._allowances.take("user eve", CAPACITY)
    monkeypatch.setattr(evaluating, "evaluate", for_some_ticks(0))
    assert bounds.attempt(NOTHING, review("", "eve"), Inputs()) is not None
    monkeypatch.setattr(evaluating, "evaluate", spin)
    with pytest.raises(LimitError, match="user `eve`"):
        bounds.attempt(NOTHING, review("", "eve"), Inputs())


def test_what_a_loop_judges_goes_on_the_account_of_its_tenant(monkeypatch) -> None:
    monkeypatch.setattr(evaluating, "READING_SLICE", 2)
    bounds = BoundedEvaluator(Hand())
    assert bounds.judge("shop", lambda: "kept") == "kept"
    assert bounds._allowances.are_untouched
    with pytest.raises(LimitError, match="to judge one object"):
        bounds.judge("shop", spin)
    assert bounds._allowances.left("shop") < CAPACITY
    bounds._allowances.take("shop", CAPACITY)
    with pytest.raises(LimitError, match="the policies of `shop` have taken more time"):
        bounds.judge("shop", lambda: "kept")
    assert bounds.judge("bank", lambda: "kept") == "kept"


def test_no_more_wait_for_a_child_than_may(monkeypatch) -> None:
    monkeypatch.setattr(evaluating, "MOST_WAITING", 0)

    async def go() -> None:
        with pytest.raises(LimitError, match="too many evaluations"):
            await BoundedEvaluator().finish(NOTHING, review(), Inputs())

    asyncio.run(go())


def test_a_child_that_takes_too_much_memory_ends_without_an_answer() -> None:
    async def go() -> None:
        with pytest.raises(LimitError):
            await in_child(lambda: b"x" * (children.MEMORY * 2))
        assert await in_child(lambda: b"whole") == b"whole"

    asyncio.run(go())


def test_a_child_has_no_file_of_its_parent_and_gives_way_to_it() -> None:
    async def go() -> None:
        files = await in_child(lambda: b"," * len([*Path("/proc/self/fd").iterdir()]))
        assert len(files) <= 2
        assert int(await in_child(lambda: str(os.nice(0)).encode())) == min(os.nice(0) + 10, 19)

    asyncio.run(go())


def test_evaluations_come_back_as_they_were() -> None:
    of = review()
    found = Evaluation({"kind": "ConfigMap", "data": {"a": ["\ud800", 2**70, 1.5, None, True]}})
    found.missing = [
        ConfigMapLookup("a", "b"),
        ServiceLookup("GET", "https://a", headers=(("a", "b"), ("c", "d"))),
    ]
    found.results = [
        RuleResult("p", "r", RuleType.MUTATION, Status.PASS, "m", "/a", True, {"k": "v"}, ("ns/e",),
                   found.patched, (Target({"a": 1}, {"a": 2}),), ({"b": 1},)),
        RuleResult("p", "s", RuleType.VALIDATION, Status.SKIP,
                   forgiven=Forgiven((Outcome(Status.FAIL, "n", "/b", {"x": "y"}),), (Outcome(Status.WARN),)),
                   images=(ImageFinding("a:1", True, True, True, "sha256:1", "f"),), policy_kind="MutatingPolicy"),
    ]  # fmt: skip
    back = children.read_back(children.written(found, of), of)
    assert back.results == found.results
    assert back.missing == found.missing
    assert back.patched == found.patched
    # whoever adds a field says here, and in the module, how it travels
    assert set(RuleResult.__match_args__) == {
        "policy", "rule", "type", "status", "message", "path", "enforce", "properties", "exceptions", "patched", "targets", "generated", "forgiven", "images", "policy_kind",
    }  # fmt: skip
    assert set(Evaluation.__slots__) == {"missing", "patched", "results", "traces"}
    same = Evaluation(of.target)
    assert children.read_back(children.written(same, of), of).patched is of.target


def test_a_process_that_has_cut_something_off_ends_in_peace() -> None:
    work = "import gc; from controllers.runtime.slices import Slice; Slice(5).run(list); kept = [[n] for n in range(2_000_000)]"
    assert subprocess.run([sys.executable, "-c", work], check=False).returncode == 0


def test_a_child_that_nobody_waits_for_any_more_is_seen_off_by_the_next() -> None:
    def alive() -> bytes:
        while True:
            time.sleep(60)

    async def story() -> set[int]:
        cut_short = asyncio.create_task(in_child(alive))
        await asyncio.sleep(0)
        cut_short.cancel()
        await asyncio.sleep(0)
        left = set(children._ending)
        cut_short.cancel()
        await asyncio.gather(cut_short, return_exceptions=True)
        while children._ending:
            assert await in_child(lambda: b"next") == b"next"
        return left

    left = asyncio.run(asyncio.wait_for(story(), 10))
    assert left
    assert not any(Path(f"/proc/{child}").exists() for child in left)
