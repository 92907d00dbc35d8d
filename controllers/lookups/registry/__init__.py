"""Image registries (OCI distribution): what a reference means, what lies behind it, who signed it.

`client.Registry` speaks the protocol and exchanges the credentials that `keychain` finds, `images` gives the engine what it asks for.
"""
