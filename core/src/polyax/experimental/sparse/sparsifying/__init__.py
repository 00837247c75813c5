"""Functions of dense arrays as functions of sparse ones: an interpreter of programs, and rules for primitives."""
