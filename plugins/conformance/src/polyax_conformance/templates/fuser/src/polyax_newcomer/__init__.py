"""A fuser for backends of polyax; see plugin.py."""
