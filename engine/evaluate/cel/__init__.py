"""CEL met with reviews: rules with `validate.cel`, the policy kinds of policies.kyverno.io, and native admission policies.

The language itself is `engine.lang.cel` and knows nothing of policies. Here are the variables that policies may read,
the order in which their expressions are asked, and what an answer means.
"""
