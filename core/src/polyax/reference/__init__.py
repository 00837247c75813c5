"""The reference backend: NumPy, one primitive at a time. Oracle of the tests, and fallback of the others."""
