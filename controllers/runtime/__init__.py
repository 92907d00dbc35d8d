"""What every process in the cluster stands on: settings, caches of policies, metrics, hand-over to the loops, shutdown."""
