"""Results that most objects get from a rule, made once and handed out as they are.

Apart from the rules' own work, because nothing of a rule's state is needed to see that an object meets a pattern without
variables, which is what almost every object does with almost every rule, nor to apply a patch without variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.lang.pattern import CompiledPattern
    from engine.model import Object, Review, RuleResult

    from .answers import Answers
    from .inputs import Inputs

    Passing = tuple[tuple[CompiledPattern, Answers], ...]
    """Patterns in order, and what is answered where one is the first that an object meets."""

    Results = tuple[RuleResult, ...]
    Quick = Callable[[Review, Inputs], Results | None]
    """Gives a rule's results, None where the rule itself has to be asked; raises LookupNeeded like the rule."""


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
    if not passing:
        return None
    ready = [
        (pattern.check, (finish(answers, False), finish(answers, True)))
        for pattern, answers in passing
    ]
    if len(ready) == 1:
        check, results = ready[0]
        return lambda review, _: results[enforces(review)] if check(review.target) is None else None

    def quick(review: Review, _inputs: Inputs) -> Results | None:
        target = review.target
        for check, results in ready:
            if check(target) is None:
                return results[enforces(review)]
        return None

    return quick


def _at_once(
    passing: AtOnce,
    finish: Callable[[Answers, bool], Results],
    enforces: Callable[[Review], bool],
) -> Quick:
    work = passing.work
    idle = finish(passing.idle, False), finish(passing.idle, True)

    def quick(review: Review, _inputs: Inputs) -> Results:
        answers = work(review.target)
        if answers is None:
            return idle[enforces(review)]
        return finish(answers, enforces(review))

    return quick
