"""Upstream's test files: read, run against the engine, judged, and shown."""
