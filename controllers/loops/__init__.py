"""What happens beside requests: generation, mutation of existing objects, reports, Events, clean-ups, status, certificates."""
