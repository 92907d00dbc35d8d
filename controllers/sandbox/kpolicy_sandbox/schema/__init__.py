"""The types of built-in kinds: what fields they have, how bodies in protobuf are read, what does not fit."""
