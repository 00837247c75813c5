"""Products and linear algebra through OpenBLAS, whose functions native code calls by their addresses."""
