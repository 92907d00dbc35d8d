"""Pure decisions on Kubernetes policies: data in, decisions out; no I/O, no clock, no chance.

The way in is `engine.evaluate`; `engine.parse` reads documents, `engine.lint` checks policies.
"""
