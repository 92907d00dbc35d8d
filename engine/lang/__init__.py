"""The small languages that policies are written in, and the scalar forms of Kubernetes and Go."""
