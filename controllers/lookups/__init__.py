"""Answers to what rules ask of the outside world: the cluster, services, registries, names.

The engine only states questions (`engine.evaluate.*Lookup`). `answering.Lookups` answers them, all of a round at once and
each under limits; its parts are `cluster` (through `controllers.kube`, with the global context), `services` and
`registry`, and `assembling.build` puts them together. Nothing here reaches an address other than the API server's but through
`egress.Gate`. Webhook, loops and command line use the same package; import the modules, for this one stays light.
"""
