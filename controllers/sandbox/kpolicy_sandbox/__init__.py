"""An embedded Kubernetes API server: HTTPS on loopback, SQLite behind it, for trying policies, for the demo and for tests.

Its own process (`python -m kpolicy_sandbox`); never a production store. What it cannot do answers 501 with a sentence.
Rooms: `schema` (types of built-in kinds), `http` (requests and answers), `objects` (what happens to an object on its way into
the store), `access` (who may do what), `admission` (webhooks), `custom` (CRDs), `controllers` (what makes it look alive).
"""
