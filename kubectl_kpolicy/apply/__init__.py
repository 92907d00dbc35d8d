"""Policies applied to objects from files: everything around the engine that `apply`, `test` and `explain` share."""
