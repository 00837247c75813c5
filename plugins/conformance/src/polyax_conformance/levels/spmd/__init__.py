"""Level 5: several devices."""
