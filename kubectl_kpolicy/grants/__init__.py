"""Grants from a terminal: what is asked for as a Grant object, decisions about it, waiting for what becomes of it.

For the commands and the console alike. Limits are checked here before anything is written, by the same tables that the
controllers and the webhook decide by; they have the last word.
"""
