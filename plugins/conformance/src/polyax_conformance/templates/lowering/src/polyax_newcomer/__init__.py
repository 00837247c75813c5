"""A lowering for backends of polyax; see plugin.py."""
