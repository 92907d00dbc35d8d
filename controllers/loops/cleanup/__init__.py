"""What is deleted because its time has come: by cleanup policies, by TTL labels, and exceptions that are over."""
