"""Admission webhooks: which are asked about a request, how they are called, and what becomes of their answers."""
