"""All interleavings, up to a depth, of what people, controllers, replicas and the clock do with a grant or a code."""
