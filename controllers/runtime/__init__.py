"""What every process in the cluster needs: settings, caches of policies, metrics, hand-over to the loops, shutdown.

The loops are told of by two names only. `controllers.loops.start(runtime: process.Runtime) -> process.Loops` is called once
in every process, before anything is served. It returns an object with

- `sink`, a `sink.Sink`: the webhook hands every finished review to it (in each worker),
- `async run()`: runs beside the webhook in every process until cancelled (queues of Events and reports),
- `async lead()`: runs while this replica holds the Lease, until cancelled (the loops that act on the cluster).

`Runtime` carries everything they need: `client`, `clock`, `cache` (policies compiled, namespaces, bindings, settings,
`cache.on_change`), `metrics`, `resolver`, `informers`, `key`, `namespace`, `identity`, `user`, `options` and `configured`, which tells
the policies that the webhook configurations in the cluster ask for by now (row W-04: only those are Ready); `options` is
what operators set. Webhook configurations and certificates are kept by `controllers.webhook.webhook_controller`, on the leader too.
"""
