"""What the rules of primitives that hold programs are made of."""
