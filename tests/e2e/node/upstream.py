"""`python -m tests.e2e.node.upstream [TEST…]`: upstream's tests that need a kubelet, on a node with what the chart installs. Takes root.

Nothing is pulled from elsewhere: a registry in the node's namespace has one image, busybox, under every name that the tests use.
Tests that install packages from the internet or ask a name server cannot pass here.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e import chainsaw, chainsaw_setups
from tests.e2e.server import binaries
from tests.e2e.server.registry import registry
from tests.e2e.tiers import ROOT
from tests.packaging import image as packaging

from . import cluster, pause, place, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

NETNS = "kpolicy-tests"
_BUSYBOX = Path("/bin/busybox")
_IMAGE = re.compile(r"""(?:\bimage: *|--image[= ])["']?([\w.\-/:]+)""")
_PRINTENV = b"""#!/bin/sh
eval "echo \\"\\$$1\\""
"""
_PROGRAMS = {
    "kyverno": f"""#!/bin/sh
PYTHONPATH={ROOT} exec {sys.executable} -m kubectl_kpolicy "$@"
""",
    "kubectl-evict": """#!/bin/sh
pod=$1 namespace=default
while [ $# -gt 0 ]; do case $1 in -n|--namespace) namespace=$2; shift;; esac; shift; done
echo "{\\"apiVersion\\":\\"policy/v1\\",\\"kind\\":\\"Eviction\\",\\"metadata\\":{\\"name\\":\\"$pod\\",\\"namespace\\":\\"$namespace\\"}}" |
  kubectl create --raw "/api/v1/namespaces/$namespace/pods/$pod/eviction" -f -
""",
}
"""Programs that tests call: Kyverno's own, and a plugin of kubectl."""


def main() -> int:
    """Run the tests and print scores; returns 1 when the node cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.node.upstream", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs")
    parser.add_argument("--out", type=Path, help="keep what came of each test in this file")
    parser.add_argument("--inside", type=Path, metavar="DIR", help=argparse.SUPPRESS)
    parser.add_argument(
        "--image", type=Path, metavar="ARCHIVE", help="an image that was built before"
    )
    parser.add_argument("tests", nargs="*", metavar="TEST", help="parts of file names")
    args = parser.parse_args()
    if args.inside:
        return _inside(args)
    folder = Path(tempfile.gettempdir()) / NETNS
    try:
        packaging.install_tools(("busybox-static",), ("busybox",))
        binaries.ready()
        binaries.ready_for_a_node()
        pause.built()
        args.image = args.image or packaging.built(ROOT / "build" / "image").archive
        place.make(NETNS, folder)
        words = ["--inside", str(folder), "--image", str(args.image), *args.tests]
        if args.out:
            words += ["--out", str(args.out.absolute())]
        command = [*place.entering(NETNS), sys.executable, "-m", "tests.e2e.node.upstream", *words]
        return subprocess.run(command, cwd=ROOT, check=False).returncode
    except (packaging.ImageError, binaries.ToolMissingError) as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    finally:
        if not args.keep and not os.geteuid():
            place.remove(NETNS, folder)


def _inside(args: argparse.Namespace) -> int:
    tests = _chosen(args.tests)
    upstream = Path(shutil.copytree(chainsaw_setups.home(), args.inside / "upstream"))
    image = packaging.read(args.image, f"{packaging.NAME}:v{packaging.version()}")
    outcomes = []
    with registry(args.inside) as there:
        layer = _layer()
        for repository, tag in sorted(set(_images(tests))):
            there.image(repository, tag, layer, Cmd=_command(repository), Env=["PATH=/bin"])
        with cluster.node(
            binaries.cache(), args.inside, (pause.built(), args.image), there.host
        ) as tier:
            cluster.tag(args.inside, image.name, image.pinned)
            print(f"installed by {walk.install(tier, image.pinned)}", flush=True)
            chainsaw_setups.give_rights(tier)
            chainsaw_setups.install_library_kinds(tier)
            for test in tests:
                outcome = chainsaw.play(
                    chainsaw.program(), tier, upstream, test, _programs(args.inside)
                )
                outcomes.append(outcome)
                print(chainsaw.line(outcome), flush=True)
                chainsaw.write(args.out, outcomes)
    chainsaw.summarize(outcomes)
    return 0


def _chosen(named: list[str]) -> list[dict[str, Any]]:
    tests = json.loads((chainsaw_setups.home() / "index.json").read_text())
    if named:
        return [test for test in tests if any(part in test["file"] for part in named)]
    return [test for test in tests if test["tier"].startswith("2")]


def _images(tests: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield repository and tag of each image that the tests' files name; a registry's name goes, because it is replaced by ours."""
    for test in tests:
        folder = chainsaw_setups.home() / Path(test["file"]).parent
        for path in folder.iterdir():
            for name in _IMAGE.findall(path.read_text()) if path.is_file() else ():
                first, slash, rest = name.partition("/")
                bare = rest if slash and "." in first else name
                repository, _colon, tag = bare.partition(":")
                yield repository if "/" in repository else f"library/{repository}", tag or "latest"


def _command(repository: str) -> list[str]:
    """Return what an image does by itself: a shell without input ends, a server writes beside its programs or ends where it may not.

    What runs ends when it is told to, so that nobody waits for the time it is given.
    """
    if "busybox" in repository:
        return ["/bin/sh"]
    writes = "echo $$ >/tmp/pid && " if "nginx" in repository else ""
    return ["/bin/sh", "-c", f"trap exit TERM; {writes}{{ sleep 100000 & wait; }}"]


def _layer() -> bytes:
    """Return a file system of busybox with the names of its programs, and two that its shell stands in for."""
    made = io.BytesIO()
    listed = subprocess.run([_BUSYBOX, "--list"], capture_output=True, text=True, check=True)
    with tarfile.open(fileobj=made, mode="w") as tar:
        _add(tar, "bin/busybox", _BUSYBOX.read_bytes())
        _add(tar, "bin/bash", b'#!/bin/sh\nexec /bin/sh "$@"\n')
        _add(tar, "bin/printenv", _PRINTENV)
        _add(tar, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n", mode=0o644)
        for name in listed.stdout.split():
            if name not in ("busybox", "bash", "printenv"):
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(folder)
    return made.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o755) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def _programs(folder: Path) -> Path:
    """Write the programs that tests call and return their folder."""
    made = folder / "programs"
    made.mkdir(exist_ok=True)
    for name, content in _PROGRAMS.items():
        (made / name).write_text(content)
        (made / name).chmod(0o755)
    return made


if __name__ == "__main__":
    sys.exit(main())
