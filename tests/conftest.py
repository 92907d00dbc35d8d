"""For all tests: hypothesis without deadlines (the machine is shared) and without a database in the tree."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("kpolicy", deadline=None, database=None, max_examples=100)
settings.load_profile("kpolicy")
