"""Cases of all primitives: arguments and parameters that are tried under every transformation."""
