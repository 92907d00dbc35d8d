"""What there is in a cluster, as rows: the read side of the commands and of the console.

Objects come from a server, a recording or a test into a `ClusterCache`; pure functions make rows of it. Nothing here draws.
"""
