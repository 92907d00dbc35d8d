"""`python -m tests.screenshots [--record]`: draws all pictures; with `--record` from a session that is played and recorded first.

The PNGs are made from SVGs by `rsvg-convert` and `pngquant` (Debian: librsvg2-bin, fonts-dejavu-core and pngquant), and each
carries the hash of the SVG that it shows, which a test compares with a fresh drawing, so that they cannot grow stale.
"""

from __future__ import annotations

import argparse
import shutil
import sys

from . import pngs, screens, session


def main() -> int:
    """Write all pictures; return 1 where there is no program for the PNGs."""
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description=__doc__)
    parser.add_argument("--record", action="store_true", help="play and record the session anew")
    if parser.parse_args().record:
        session.record(screens.RECORDING)
    drawn = screens.drawings()
    for old in {path.name for path in screens.FOLDER.iterdir()} - screens.files():
        (screens.FOLDER / old).unlink()
    for name, svg in drawn.items():
        if "svg" in screens.PICTURES[name].suffixes:
            (screens.FOLDER / f"{name}.svg").write_text(svg)
    if missing := [one for one in pngs.PROGRAMS if shutil.which(one) is None]:
        print(f"error: {' and '.join(missing)} not here, the PNGs are as before", file=sys.stderr)
        print("help: apt-get install librsvg2-bin fonts-dejavu-core pngquant", file=sys.stderr)
        return 1
    for name, svg in drawn.items():
        path = screens.FOLDER / f"{name}.png"
        if pngs.source_of(path) != pngs.hash_of(svg):
            path.write_bytes(pngs.drawn(svg))
    return 0


if __name__ == "__main__":
    sys.exit(main())
