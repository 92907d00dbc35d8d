"""Reports beyond what etcd should hold: an aggregated API server for `wgpolicyk8s.io` and `openreports.io`.

A program of its own (`python -m controllers.report_store`) under an account of its own. The API server hands it requests
(APIService) and says who asks; `requester` believes nobody else, `rights` asks the API server what the requester may do.
`api` answers, `storage` keeps reports, their changes and their history by day in SQLite or PostgreSQL, `feed` and `watching` tell
what changes.
"""
