"""Histories by chance: people, replicas that break, a server that repeats itself, and what must hold whatever happened."""
