"""`python -m kubectl_kpolicy`: the plugin without its console script."""

from .entry import program

program()
