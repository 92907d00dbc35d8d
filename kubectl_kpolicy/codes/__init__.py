"""One-time codes from a terminal: issued to somebody, made void, brought along with an object; journals of `random()` policies.

INVARIANT: a code is never an argument of a command and never printed but where it was asked for by `--show` on a terminal.
"""
