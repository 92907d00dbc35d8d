"""The one filter language, for `--where`, the console's filter line and saved views.

A filter is words side by side, all of which must hold: `sev>=high ns=team-* age<1h !exc`. There are `or`, `not`, parentheses,
quotes, `/regex/`, and k9s' own forms: `!text`, `-l selector`, `-f fuzzy`. Nothing here reads a clock or draws.
"""

from .build import Filter, compile_filter
from .reading import FilterError, parts_of, quoted

__all__ = ["Filter", "FilterError", "compile_filter", "parts_of", "quoted"]
