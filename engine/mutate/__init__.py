"""Mutation as pure functions: a patch and an object go in, the changed object comes out.

The rule evaluator calls `handler`; the webhook turns before and after into patch operations with `diff`. Nothing here knows
variables, contexts or requests: patches arrive with every variable already replaced.
"""
