"""`python -m tests.e2e.node [--keep] [SCENARIO…]`: builds the image, brings up a node, installs, plays, disturbs, removes. Takes root.

Prints every step with its seconds. Everything lives in a network namespace and a folder of its own and goes at the end, also after a
crash: the next run begins by removing what an earlier one left.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tests.e2e import scenario
from tests.e2e.scenario import ScenarioError
from tests.e2e.server import binaries
from tests.e2e.server.processes import StartError
from tests.e2e.tiers import ROOT
from tests.packaging import image as packaging

from . import cluster, pause, place, walk

if TYPE_CHECKING:
    from collections.abc import Callable

Made = TypeVar("Made")
NETNS = "kpolicy-node"
PACKAGES = ("containerd", "runc", "containernetworking-plugins", "nftables", "conntrack")
PROGRAMS = ("containerd", "runc", "nft", "conntrack")
SCENARIOS = ("running-pods", "pod-security")


def main() -> int:
    """Play everything and return 1 when anything is not as it must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.node", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs")
    parser.add_argument("--inside", type=Path, metavar="DIR", help=argparse.SUPPRESS)
    parser.add_argument(
        "--image", type=Path, metavar="ARCHIVE", help="an image that was built before"
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", default=SCENARIOS)
    args = parser.parse_args()
    if args.inside:
        return _inside(args.inside, args.image, args.scenarios)
    began = time.monotonic()
    folder = Path(tempfile.gettempdir()) / NETNS
    try:
        _timed(
            "programs of a node are installed", lambda: packaging.install_tools(PACKAGES, PROGRAMS)
        )
        _timed("etcd and the API server are built", binaries.ready)
        _timed("programs of a node are built", binaries.ready_for_a_node)
        _timed("the image of Pods' sandboxes is built", pause.built)
        archive = args.image or _timed("the image is built", lambda: packaging.built(ROOT / "build" / "image")).archive  # fmt: skip
        place.make(NETNS, folder)
        words = [sys.executable, "-m", "tests.e2e.node", f"--inside={folder}", f"--image={archive}", *args.scenarios]  # fmt: skip
        code = subprocess.run([*place.entering(NETNS), *words], cwd=ROOT, check=False).returncode
    except (packaging.ImageError, binaries.ToolMissingError) as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    finally:
        if not args.keep and not os.geteuid():
            _timed("everything is removed", lambda: place.remove(NETNS, folder))
    print(f"{time.monotonic() - began:6.1f} s  in all")
    return code


def _inside(folder: Path, archive: Path, scenarios: list[str]) -> int:
    """Play in the namespace."""
    image = packaging.read(archive, f"{packaging.NAME}:v{packaging.version()}")
    failed = 0
    began = time.monotonic()
    try:
        with cluster.node(binaries.cache(), folder, (pause.built(), archive)) as tier:
            _say(f"{time.monotonic() - began:6.1f} s  the node is ready")
            cluster.tag(folder, image.name, image.pinned)
            before = walk.everything(tier)
            way = _timed(
                "three replicas are installed and ready", lambda: walk.install(tier, image.pinned)
            )
            _say(f"          by {way}")
            for name in scenarios:
                _say(f"{cluster.NODE}: {scenario.load(name).title}")
                walk.play(tier, name, {"image": image.pinned}, _say)
            walk.disturb(tier, _say)
            _timed("everything of ours is uninstalled", lambda: walk.uninstall(tier))
            _compare(before, walk.everything(tier))
    except (ScenarioError, StartError, RuntimeError, TimeoutError, cluster.NodeError) as error:
        print(f"FAILED on {cluster.NODE} (logs in {folder} with --keep):\n{error}", flush=True)
        failed = 1
    print(f"{1 - failed} passed, {failed} failed", flush=True)
    return failed


def _compare(before: set[str], after: set[str]) -> None:
    """Raise ScenarioError where the cluster has not what it had before: objects of ours that stay, or others that are gone."""
    different = sorted(before ^ {one for one in after if one not in _OF_SCENARIOS})
    if different:
        raise ScenarioError(f"after removal the cluster differs in: {', '.join(different)}")


_OF_SCENARIOS = frozenset({"namespace/plain", "namespace/second"})
"""What scenarios make and leave."""


def _timed(what: str, doing: Callable[[], Made]) -> Made:
    began = time.monotonic()
    made = doing()
    _say(f"{time.monotonic() - began:6.1f} s  {what}")
    return made


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
