"""The third tier: one real node, on which the engine runs as the image that is released, installed as people install it."""
