"""Level 4: loops, branches and callbacks."""
