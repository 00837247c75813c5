"""Running plans: what executables have in common."""
