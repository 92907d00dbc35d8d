"""UpdateRequests carried out: generate and mutate-existing rules for the requests that set them off."""
