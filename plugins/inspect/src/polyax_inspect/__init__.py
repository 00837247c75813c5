"""Drawings and dumps of compiled programs."""
