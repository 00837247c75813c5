"""A backend of polyax on the host's memory. Read plugin.py, then backend.py, then emitter.py."""
