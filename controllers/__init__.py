"""Everything that lives in the cluster or speaks to it."""
