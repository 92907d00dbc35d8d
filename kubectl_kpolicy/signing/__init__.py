"""Signing and verifying manifests from the command line: files, keys, identities and the network around the engine.

The engine decides what a valid signature is; here is everything that touches the world for it. Modules are loaded by the
commands when they run, and the cryptography and sigstore libraries only when a key or an identity is used.
"""

from __future__ import annotations
