"""The matrix: who asks, what he wants done, and by which way through us; nothing happens that he could not have done himself.

Run as part of the tests, on the sandbox with a whole replica, under rights wider than anybody should give our accounts.
"""
