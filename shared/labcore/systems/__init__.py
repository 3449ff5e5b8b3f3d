"""Small real machines: streams, state, files, a database, each with its own rules."""
