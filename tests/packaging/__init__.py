"""What is released: wheel, archives for krew, list of parts; each built twice gives the same bytes."""
