"""Fuzzing: inputs without end for parsers and evaluators of what users write; run by hand, with `python -m tests.fuzz.cel`."""
