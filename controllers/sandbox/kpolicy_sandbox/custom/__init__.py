"""Custom resources: what a CRD serves, and what its schema says about objects."""
