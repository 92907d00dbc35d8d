"""The admission webhook: requests of the API server in, verdicts, warnings and patches out."""
