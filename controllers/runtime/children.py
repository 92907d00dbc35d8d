"""Work in a child that can be killed: forked from this process, so that it knows everything and costs milliseconds.

The child does nothing but pure evaluation: it closes every file it inherited, gives up its priority, and lives under limits of
processor time and memory that the kernel enforces. What it found comes back as bytes through a pipe.

Forked and not kept beside, because a kept process would have to be told all policies, and every change of them, a second time. It
is sound because the main thread forks, which is the only one that evaluates: a lock that another thread holds at that moment can
at worst let the child hang, and a child that hangs is killed like one that computes.

Evaluations come back as text, written out field by field and read the same way: what comes back can hold values only, whatever the
child has become.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import signal
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, get_args

import orjson

from engine.errors import LimitError
from engine.evaluate import Evaluation, Lookup
from engine.model import Outcome, Review, RuleResult, RuleType, Status, Target
from engine.model.result import Forgiven, ImageFinding

from .slices import never_again

if TYPE_CHECKING:
    from collections.abc import Callable

PROCESSOR_SECONDS: Final = 1
WALL_SECONDS: Final = 2.0
"""How long a child may live: it runs behind everything else, so it may need longer than it computes."""
MEMORY: Final = 160 * 1024 * 1024
"""Bytes that a child may take beyond what it is born with."""
MOST_ANSWER: Final = 8 * 1024 * 1024
_NICENESS: Final = 10
_POLL: Final = 0.005
_MARK: Final = b"\x01"
_ending: Final[set[int]] = set()
"""Children that were killed and not yet seen off."""
_TOO_LONG: Final = "the policies take too much time or memory on this object"


async def in_child(work: Callable[[], bytes], seconds: float = WALL_SECONDS) -> bytes:
    """Return what `work` gives, computed in a child; raises LimitError where it does not end within its limits."""
    _see_off()
    reading, writing = os.pipe()
    try:
        child = _fork()
        if child == 0:
            _be_child(work, writing)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    try:
        async with asyncio.timeout(min(seconds, WALL_SECONDS)):
            found = await _read_all(reading)
    except TimeoutError:
        raise LimitError(_TOO_LONG) from None
    finally:
        os.close(reading)
        await _end(child)
    # the mark comes last: an answer without it was cut off
    if not found.endswith(_MARK):
        raise LimitError(_TOO_LONG)
    return found[: -len(_MARK)]


def _fork() -> int:
    with warnings.catch_warnings():
        # other threads only wait for names to be looked up; see above
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _be_child(work: Callable[[], bytes], writing: int) -> NoReturn:
    """Do the work and end, whatever happens."""
    status = 1
    try:
        _settle(writing)
        view = memoryview(work() + _MARK)
        while view:
            view = view[os.write(writing, view) :]
        status = 0
    finally:
        os._exit(status)


def _settle(writing: int) -> None:
    """Leave behind what belongs to the parent, and take on limits."""
    never_again()
    signal.set_wakeup_fd(-1)
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU):
        signal.signal(name, signal.SIG_DFL)
    gc.disable()
    os.closerange(0, writing)
    os.closerange(writing + 1, 1 << 20)
    os.nice(_NICENESS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


async def _read_all(reading: int) -> bytes:
    """Return everything that comes through a pipe; raises LimitError for too much of it."""
    os.set_blocking(reading, False)
    loop, chunks, size = asyncio.get_running_loop(), [], 0
    ready = asyncio.Event()
    loop.add_reader(reading, ready.set)
    try:
        while True:
            await ready.wait()
            ready.clear()
            with suppress(BlockingIOError):
                while chunk := os.read(reading, 1 << 20):
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > MOST_ANSWER:
                        raise LimitError(_TOO_LONG)
                return b"".join(chunks)
    finally:
        loop.remove_reader(reading)


async def _end(child: int) -> None:
    """Kill a child that may be gone already, and see it off; one that is not gone before we are cancelled is seen off by the next."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _ending.add(child)
    while _see_off() and child in _ending:
        await asyncio.sleep(_POLL)


def _see_off() -> bool:
    """Take leave of the children that are gone; tell whether any are left."""
    for child in list(_ending):
        try:
            is_gone = os.waitpid(child, os.WNOHANG) != (0, 0)
        except ChildProcessError:
            is_gone = True
        if is_gone:
            _ending.discard(child)
    return bool(_ending)


_LOOKUPS: Final = {kind.__name__: kind for kind in get_args(Lookup)}


def written(found: Evaluation, review: Review) -> bytes:
    """Return an evaluation of `review` as text; an object that is as it was is not written again."""
    patched: Any = None
    if found.patched is not review.target:
        patched = {"value": found.patched}
    results = [_result(one) for one in found.results]
    missing = [[one.__class__.__name__, _fields(one)] for one in found.missing]
    return json.dumps({"results": results, "missing": missing, "patched": patched}).encode()


def read_back(text: bytes, review: Review) -> Evaluation:
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
