"""Image registries (OCI distribution): what a reference means, what lies behind it, who signed it.

`client.Registry` speaks the protocol, `keychain` finds credentials, `tokens` exchanges them, `images` and `signatures` give
the engine what it asks for.
"""
