"""Generate rules carried out: what should exist is made, kept as the rule says, and taken away again."""
