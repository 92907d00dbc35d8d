"""A guided run of the five scenarios on the samples that ship with kpolicy, without a cluster."""
