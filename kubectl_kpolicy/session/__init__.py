"""What a command works with: the documents people name on the command line, and the ones it drafts for them."""
