"""The worked examples of the course by topic: givens in, computed outputs out."""
