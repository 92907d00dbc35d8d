"""Proofs of what is promised about codes, grants, exceptions and records, on the sandbox and on a real API server.

`python -m tests.e2e.proofs [--tier sandbox|real] [NAME…]`. Each proof runs on a fresh server, says what it measured, and fails
with the first thing that is not as promised. They take minutes; the scenarios of `python -m tests.e2e` do not wait for them.
"""
