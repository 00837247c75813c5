"""Whole calls in native code: a user's arguments in, arrays in a tree out, with no Python in between."""
