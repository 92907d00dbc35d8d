"""Objects of the cluster as the engine's values, one module per noun; the only place that knows both shapes."""
