"""Finds helm, or builds it from its Go module: named by `KPOLICY_TEST_HELM`, on the path, or in the cache.

`python -m tests.packaging.helm` builds it where it is not there, in some minutes, and prints its path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "v3.22.0"
_PLACE = Path.home() / ".cache" / "kpolicy" / "bin"


def program() -> Path | None:
    """Return helm, None where it is not on this machine."""
    named = (os.environ.get("KPOLICY_TEST_HELM"), shutil.which("helm"), _PLACE / "helm")
    return next((Path(one) for one in named if one and Path(one).is_file()), None)


def ready() -> Path:
    """Return helm, building it where it is not there; raises ToolMissingError without Go or modules."""
    if found := program():
        return found
    from tests.e2e.server.binaries import ToolMissingError, go_command

    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    done = subprocess.run(
        ["nice", "-n", "15", go_command(), "install", "-trimpath", f"helm.sh/helm/v3/cmd/helm@{VERSION}"],
        env={**environment, "GOBIN": str(_PLACE)},
        check=False,
    )  # fmt: skip
    found = program()
    if done.returncode or found is None:
        raise ToolMissingError("helm could not be built (its output is above)")
    return found


if __name__ == "__main__":
    print(ready(), file=sys.stdout)
