"""`python -m tests.packaging [--out DIR] [--platform NAME]… [--prove]`: builds what is released, and with `--prove` installs it.

Wheels of the packages that the archives carry are fetched from Python's registry, by the hashes of the lock file.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from . import archive, krew, parts, proof, wheel


def main() -> int:
    """Build everything; return 0, or 1 when what was built does not work."""
    parser = argparse.ArgumentParser(prog="python -m tests.packaging", description=__doc__)
    parser.add_argument("--out", type=Path, default=wheel.ROOT / "dist", metavar="DIR")
    parser.add_argument("--platform", action="append", choices=("all", *archive.PLATFORMS))
    parser.add_argument("--prove", action="store_true", help="install what was built, and run it")
    args = parser.parse_args()
    wanted = args.platform or [archive.this_platform()]
    names = list(archive.PLATFORMS) if "all" in wanted else wanted
    made = built(args.out.absolute(), names)
    for path in made:
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}", flush=True)
    return proof.run(args.out.absolute()) if args.prove else 0


def built(out: Path, platforms: list[str]) -> list[Path]:
    """Build everything into a folder and return the files."""
    out.mkdir(parents=True, exist_ok=True)
    trees = (wheel.ROOT, wheel.ROOT / wheel.SANDBOX)
    wheels = [wheel.built(out, tree) for tree in trees]
    archives = {name: archive.built(out, name, wheels) for name in platforms}
    made = [*wheels, *(wheel.source(out, tree) for tree in trees)]
    made += [*archives.values(), krew.manifest(out, archives), *parts.lists(out)]
    return made


if __name__ == "__main__":
    sys.exit(main())
