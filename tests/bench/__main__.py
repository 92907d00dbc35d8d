"""`python -m tests.bench [PART…]`: prints speed and memory; ratios to a yardstick of the same run decide the exit code.

Times are reported, never judged: the host's speed is not the program's.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from . import cel_cost, console_cost, engine_cost, growth_cost, process_cost, subjects, webhook_cost

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ENGINE_GATES = {
    "16 Pod Security policies, bytes to results": 12.0,
    "16 Pod Security policies in CEL, review decoded": 8.0,
    "one simple rule, review decoded": 0.5,
}
PROCESS_GATES = {
    "kpolicy version": 1.7,
    "kpolicy --help": 1.7,
    "apply, 19 policy files x 1 Pod": 6.5,
}
CONSOLE_GATES = {
    "--help": ("python -c pass", 6.0),
    "completion": ("python -c pass", 6.0),
    "violations, to the first request": ("python -c pass", 30.0),
    "the console's first frame": ("a bare Textual application's frame", 2.8),
    "first of 50,000 rows": ("a bare Textual application's frame", 3.2),
}
"""By figure: its yardstick, and how many times that it may cost (the aims in milliseconds over the yardstick's on the reference host)."""

KEY_GATE = 1.0
IDLE_GATE = 0.01
CEL_GATES = {cel_cost.WHOLE: 8.0}
CEL_MEMORY = 8.0
WEBHOOK_GATES = {
    "nothing matches": 1.33,
    "one validates": 1.33,
    "one ValidatingPolicy": 1.33,
    "one mutates": 1.33,
    "one MutatingPolicy": 1.4,
    "16 validate": 1.9,
    "16 ValidatingPolicies": 3.0,
}
"""How many times the cost of a server that only decodes: three quarters of its rate are a third more cost."""
LIKE = {
    "nothing matches": ("one validates", 1.25),
    "one mutates": ("one validates", 1.25),
    "one ValidatingPolicy": ("one validates", 1.2),
    "one MutatingPolicy": ("one mutates", 1.2),
    "16 validate, refused": ("16 validate", 1.6),
    "16 ValidatingPolicies, refused": ("16 ValidatingPolicies", 1.4),
    "16 validate, codes offered, refused": ("16 validate", 3.2),
}
"""By server: another one, and how many times its cost it may have; without policies in CEL they cost the same, and the rest is room for a busy host."""

GROWTH_GATE = 1.3
"""How many times the cost of a review with few policies one with the most may have, of which one concerns its object."""

WEBHOOK_MEMORY = 90.0
PODS_GATE = 1.2
MEMORY_GATE = 150.0
MANY_GATE = 400.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that are named, all of them without a name, print them, and return 1 when a ratio is over its gate."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Measure speed and memory; 1 is the exit code where a ratio to a yardstick is over its gate.",
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}")
    parser.add_argument("--list", action="store_true", help="print the parts and run none")
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(PARTS))
        return 0
    if unknown := [name for name in given.parts if name not in PARTS]:
        print(
            f"no benchmark is called `{unknown[0]}`; there are {', '.join(PARTS)}", file=sys.stderr
        )
        return 2
    over = [text for name in given.parts or PARTS for text in PARTS[name]()]
    for text in over:
        print(f"over its gate: {text}", file=sys.stderr)
    return 1 if over else 0


def _engine() -> list[str]:
    size = len(subjects.review_bytes())
    print(
        f"engine, on a Pod AdmissionReview of {size} bytes (medians of {engine_cost.ROUNDS} rounds)"
    )
    seconds = engine_cost.measure()
    yardstick = seconds["orjson.loads of the review"]
    compiling = "compile one policy (with autogen), mean of 16"
    seconds[compiling] /= len(subjects.STANDARDS)
    over = []
    for name, value in seconds.items():
        ratio, gate = value / yardstick, ENGINE_GATES.get(name)
        _line(name, f"{value * 1e6:9.1f} µs", ratio, gate)
        if gate is not None and ratio > gate:
            over.append(f"{name}: {ratio:.2f} x")
    return over


def _cel() -> list[str]:
    print("\nCEL (ratios to `orjson.loads` of the same review; compiling of new texts)")
    cost = cel_cost.measure()
    yardstick = cost.seconds["orjson.loads of the review"]
    over = []
    for name, value in cost.seconds.items():
        ratio, gate = value / yardstick, CEL_GATES.get(name)
        _line(name, f"{value * 1e6:9.1f} µs", ratio, gate)
        if gate is not None and ratio > gate:
            over.append(f"{name}: {ratio:.2f} x")
    print(f"  a compiled expression holds {cost.memory:.1f} KiB on average")
    theirs = cost.seconds.get(cel_cost.THEIRS)
    if theirs is not None and cost.seconds[cel_cost.OURS] > theirs:
        over.append("one CEL expression takes longer than with cel-expr-python")
    return over + (
        [f"a CEL expression holds {cost.memory:.1f} KiB"] if cost.memory > CEL_MEMORY else []
    )


def _growth() -> list[str]:
    few, most = growth_cost.FEW, growth_cost.MOST
    print(
        f"\none review, {few} and {most:,} policies told apart by … (processor time; beside it the first review)"
    )
    over = []
    for name, shape in growth_cost.SHAPES.items():
        found = growth_cost.latency(shape, (few, most))
        times = f"{found.few * 1e6:6.0f} {found.most * 1e6:6.0f} µs {found.first * 1e3:6.1f} ms"
        _line(name, times, found.ratio, GROWTH_GATE)
        if found.ratio > GROWTH_GATE:
            over.append(f"{most:,} policies by {name}: {found.ratio:.2f} x {few}")
    for name in ("labels", "CEL, labels"):
        shape = growth_cost.SHAPES[name]
        compiling, changing, after = growth_cost.change(shape, most)
        print(
            f"  {most:,} by {name}: compiled in {compiling:.1f} s, a change {changing * 1e3:.0f} ms and {after * 1e3:.0f} ms with the review after it"
        )
        print(
            f"  {growth_cost.MANY:,} by {name}: {growth_cost.held(shape, growth_cost.MANY):.1f} MiB"
        )
    return over


def _webhook() -> list[str]:
    print(
        f"\nwebhook over HTTPS, {webhook_cost.CONNECTIONS} connections that stay open, one core"
        " (processor time of a review, beside a server of aiohttp's that only decodes)"
    )
    found = webhook_cost.measure()
    yardstick = found["aiohttp"].cost
    over = []
    for name, figures in found.items():
        ratio, gate = figures.cost / yardstick, WEBHOOK_GATES.get(name)
        waits = f"p50 {figures.wait(0.5):5.1f} p99 {figures.wait(0.99):5.1f} ms"
        shown = f"{figures.rate:6.0f}/s {waits} {figures.memory:5.1f} MiB {figures.cost:6.0f} µs"
        _line(name, shown, ratio, gate, width=30)
        if gate is not None and ratio > gate:
            over.append(f"webhook, {name}: {ratio:.2f} x")
        if figures.memory > WEBHOOK_MEMORY:
            over.append(f"webhook, {name}: {figures.memory:.0f} MiB")
    for name, (other, most) in LIKE.items():
        ratio = found[name].cost / found[other].cost
        if ratio > most:
            over.append(f"webhook, {name}: {ratio:.2f} x {other}")
    return over


def _processes() -> list[str]:
    print("\nwhole commands (medians of processor time, peak memory)")
    found = process_cost.measure()
    bare, loader = found["python -c pass"][0], found["CSafeLoader on the 1,000 Pods"][0]
    over = []
    for name, (seconds, peak) in found.items():
        large = name.startswith("apply, 16")
        ratio = seconds / (loader if large else bare)
        gate = PODS_GATE if large else PROCESS_GATES.get(name)
        _line(name, f"{seconds * 1e3:9.1f} ms {peak:6.1f} MiB", ratio, gate)
        if gate is not None and ratio > gate:
            over.append(f"{name}: {ratio:.2f} x")
        if large and peak > MEMORY_GATE:
            over.append(f"{name}: {peak:.0f} MiB")
    for command in (["version"], ["--help"]):
        loaded = process_cost.heavy_modules(*command)
        print(f"  {' '.join(command)} loads: {', '.join(loaded) or 'none of the heavy packages'}")
        over += [f"{' '.join(command)} loads {module}" for module in loaded]
    return over


def _console() -> list[str]:
    print(
        "\nconsole and commands of the cluster (processor time from the start of the process; wall time beside it)"
    )
    costs, keys = console_cost.measure()
    over = []
    for name, cost in costs.items():
        yardstick, gate = CONSOLE_GATES.get(name, ("python -c pass", None))
        ratio = cost.processor / costs[yardstick].processor
        _line(name, f"{cost.processor:9.1f} ms {cost.wall:9.1f} ms", ratio, gate)
        if gate is not None and ratio > gate:
            over.append(f"{name}: {ratio:.2f} x {yardstick}")
    bare, ours = keys.values()
    for name, value in keys.items():
        _line(name, f"{value:9.1f} ms", value / bare, KEY_GATE if value is ours else None)
    idle = console_cost.idle()
    print(f"  {'an idle console':<48} {idle:9.2%} of a core (gate {IDLE_GATE:.0%})")
    over += [f"an idle console: {idle:.2%} of a core"] if idle > IDLE_GATE else []
    first, most, key, alone = console_cost.of_many_rows()
    print(
        f"  {'first of 1,000,000 rows':<48} {first.processor:9.1f} ms {first.wall:9.1f} ms, at most {most:.0f} MiB (gate {MANY_GATE:.0f})"
    )
    _line("a key on 1,000,000 rows", f"{key:9.1f} ms", key / alone, KEY_GATE)
    over += [f"1,000,000 rows: {most:.0f} MiB"] if most > MANY_GATE else []
    over += [f"a key on 1,000,000 rows: {key / alone:.2f} x"] if key > KEY_GATE * alone else []
    return over + ([f"a key on 50,000 rows: {ours / bare:.2f} x"] if ours > KEY_GATE * bare else [])


def _line(name: str, figure: str, ratio: float, gate: float | None, *, width: int = 48) -> None:
    limit = f" (gate {gate:g} x)" if gate is not None else ""
    print(f"  {name:<{width}} {figure}  {ratio:7.2f} x{limit}")


PARTS: dict[str, Callable[[], list[str]]] = {
    "engine": _engine,
    "cel": _cel,
    "growth": _growth,
    "webhook": _webhook,
    "processes": _processes,
    "console": _console,
}
"""What can be measured, by name; each prints its figures and returns what is over its gate."""


if __name__ == "__main__":
    sys.exit(main())
