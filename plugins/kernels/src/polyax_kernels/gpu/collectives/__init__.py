"""Collectives between GPUs."""
