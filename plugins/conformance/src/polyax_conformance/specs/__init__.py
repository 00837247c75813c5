"""Specification tables: functions of arrays, with NumPy as the oracle, and where they are differentiable."""
