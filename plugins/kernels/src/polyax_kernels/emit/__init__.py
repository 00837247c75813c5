"""From kernels to text or values of a code generator."""
