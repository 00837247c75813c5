"""A backend of polyax for devices with memory of their own. Read plugin.py, backend.py, emitter.py, then runtime.py."""
