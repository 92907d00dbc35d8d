"""`python -m tests.histories [--count N] [--seed S] [--jobs J] [--show]`: play histories on the server of memory.

In one event loop each, with a clock of their own: the webhook, the loops of grants, codes and the trail, and two replicas are
the shipped ones; the API server is one of memory that repeats, loses and delays requests as real ones do. `--real` plays on
kube-apiserver and etcd, with replicas as processes. A seed that fails is printed, and `--seed S --count 1 --show` plays it again.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from .play import figures_of

_PART = 20


def main() -> int:
    """Play and print what does not hold; return 1 where anything does not."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="print everything that happened")
    parser.add_argument("--real", action="store_true", help="on kube-apiserver and etcd")
    options = parser.parse_args()
    if options.real:
        from . import real

        return real.main(options.count, options.seed)
    began = time.monotonic()
    sums, failing = [0, 0, 0, 0], []
    for number, told in enumerate(_told(options), 1):
        sums = [one + more for one, more in zip(sums, told[:4], strict=True)]
        if told[4]:
            failing.append(told[4])
            print(told[4], flush=True)
        if options.show:
            print(told[5])
        if number % 500 == 0:
            print(f"{number} played in {time.monotonic() - began:.0f} s", flush=True)
    tried, stored, uses, deaths = sums
    print(
        f"{options.count} histories in process from seed {options.seed}: {tried} requests, {stored} stored, {uses} uses of codes and grants, "
        f"{deaths} deaths of replicas; {len(failing)} histories broken; {time.monotonic() - began:.0f} s"
    )
    return int(bool(failing))


def _told(options: argparse.Namespace):
    seeds = range(options.seed, options.seed + options.count)
    parts = [seeds[at : at + _PART] for at in range(0, len(seeds), _PART)]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for part in pool.map(figures_of, parts):
            yield from part


if __name__ == "__main__":
    sys.exit(main())
