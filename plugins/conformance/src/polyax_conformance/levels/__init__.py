"""The levels: what is asked of a backend, from its contract to its collectives. Each is a file of tests."""
