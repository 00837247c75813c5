"""A backend of polyax for an engine that takes whole programs. Read plugin.py, then backend.py, then engine.py."""
