"""The admission webhook: requests of the API server in, verdicts, warnings and patches out.

`serving.Serving` is the server of one process on a `controllers.runtime.process.Runtime`; `webhook_controller.WebhookController` is what the leader
keeps in step: webhook configurations and certificates. Between them, from the outside in: `server` knows connections and
bytes, `envelope` AdmissionReviews, `reviewing` decides on resources (with `filters`, `verdicts`, `blocks`, `triggers`),
`validator` on our own kinds (with `scopes`). `admission_rules` and `configurations` compute documents, `certificates`,
`secrets` and `tls` are whom the API server trusts.

Finished reviews go to the sink of the loops (`controllers.runtime.sink`); nothing here writes Events, reports or requests.
"""
