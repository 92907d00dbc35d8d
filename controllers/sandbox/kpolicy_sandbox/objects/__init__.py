"""What happens to an object between a request and the store: checks, defaults, patches, names, deletion."""
