"""Results that most objects get from a rule, made once and handed out as they are.

Apart from the rules' own work, because nothing of a rule's state is needed to see that an object meets a pattern without
variables, which is what almost every object does with almost every rule, or misses one whose message has none either, nor to
apply a patch without variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.match.combine import always, never
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.lang.pattern import CompiledPattern, Miss
    from engine.model import Object, Review, RuleResult

    from .inputs import Inputs
    from .state import Answers

    Results = tuple[RuleResult, ...]
    Quick = Callable[[Review, Inputs], Results | None]
    """Gives a rule's results, None where the rule itself has to be asked; raises LookupNeeded like the rule."""


_MOST_MISSES: Final = 8
_LONGEST_PATH: Final = 256
"""How many failures of a rule are remembered, and how long their paths are, which may be made of an object's keys."""


@record
class Passing:
    """Patterns in order, and what is answered where one is the first that an object meets.

    `missed` answers an object that misses the only one; None where the rule has to be asked.
    """

    choices: tuple[tuple[CompiledPattern, Answers], ...] = ()
    missed: Callable[[Miss], Answers] | None = None


@record
class AtOnce:
    """The whole work of a rule that needs nothing but the object; None stands for `idle`, its answer where nothing is to do."""

    work: Callable[[Object], Answers | None]
    idle: Answers


def compile_quick(
    passing: Passing | AtOnce,
    finish: Callable[[Answers, bool], Results],
    enforces: Callable[[Review], bool],
) -> Quick | None:
    """Compile what `passing` tells of a rule; `finish` makes the results of an answer, for rules that enforce or do not.

    None where nothing can be told without the rule. What is compiled may raise what patterns and patches raise; the rule is
    asked then.
    """
    if isinstance(passing, AtOnce):
        return _at_once(passing, finish, enforces)
    if not passing.choices:
        return None
    ready = [
        (pattern.check, (finish(answers, False), finish(answers, True)))
        for pattern, answers in passing.choices
    ]
    if len(ready) == 1:
        return _alone(passing.choices[0][0], ready[0][1], passing.missed, finish, enforces)

    def quick(review: Review, _inputs: Inputs) -> Results | None:
        target = review.target
        for check, results in ready:
            if check(target) is None:
                return results[enforces(review)]
        return None

    return quick


def _alone(
    pattern: CompiledPattern,
    results: tuple[Results, Results],
    missed: Callable[[Miss], Answers] | None,
    finish: Callable[[Answers, bool], Results],
    enforces: Callable[[Review], bool],
) -> Quick:
    """Return what tells of a single pattern: failures at the same place are the same results, too."""
    known: dict[tuple[str, bool], Results] = {}
    usual = results[1] if enforces is always else results[0] if enforces is never else None

    def quick(review: Review, _inputs: Inputs) -> Results | None:
        fault = pattern.fault(review.target)
        if fault is None:
            return usual or results[enforces(review)]
        if missed is None:
            return None
        miss = fault.miss()
        if miss.kind != "fail":
            return finish(missed(miss), enforces(review))
        if review.operation == "UPDATE":
            # the object may have failed before, which is the rule's to see
            return None
        place = miss.path, enforces(review)
        found = known.get(place)
        if found is None:
            found = finish(missed(miss), place[1])
            if len(miss.path) <= _LONGEST_PATH:
                if len(known) >= _MOST_MISSES:
                    known.clear()
                known[place] = found
        return found

    return quick


def _at_once(
    passing: AtOnce, finish: Callable[[Answers, bool], Results], enforces: Callable[[Review], bool]
) -> Quick:
    work = passing.work
    idle = finish(passing.idle, False), finish(passing.idle, True)

    def quick(review: Review, _inputs: Inputs) -> Results:
        answers = work(review.target)
        if answers is None:
            return idle[enforces(review)]
        return finish(answers, enforces(review))

    return quick
