"""First-order primitives by family, each with all its rules on one screen."""
