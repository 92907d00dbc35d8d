"""Validate rules over patterns: outcomes and their exact texts."""
