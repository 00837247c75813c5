"""References to arrays that change: what they are, and how programs with them become programs without."""
