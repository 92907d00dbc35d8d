"""Fuzzing: inputs without end for what reads and evaluates the texts of strangers; `python -m tests.fuzz --seconds 60`.

Where atheris is installed (`pip install -e .[fuzz]`, an environment of its own) inputs are guided by what they reach; elsewhere
they come from the same generators unguided. Seeds are in `corpus/`, and every test run replays them.
"""
