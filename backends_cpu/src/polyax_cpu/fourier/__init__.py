"""Fourier transforms: of many lines at a time by native code, of others by a library."""
