"""What leaves the program: data on standard output in one of the formats, words about it on standard error."""
