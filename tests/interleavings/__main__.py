"""`python -m tests.interleavings [--deeper N]`: search every setting N steps deeper than `make test` does."""

from __future__ import annotations

import argparse
import sys
import time

from .search import search
from .settings import models


def main() -> int:
    """Print how far each search came; return 1 where a promise does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.interleavings", description=__doc__)
    parser.add_argument("--deeper", type=int, default=0, metavar="N")
    began, total, broken = time.monotonic(), 0, 0
    for model, depth in models(parser.parse_args().deeper):
        found = search(model, depth)
        total += found.interleavings
        print(found, flush=True)
        if found.break_ is not None:
            broken += 1
            print(f"BROKEN {found.break_}", flush=True)
    print(
        f"{total:.3g} interleavings in {time.monotonic() - began:.0f} s, {broken} settings broken"
    )
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
