"""Complex numbers as pairs of real ones: programs are rewritten before they are lowered, so no device knows of them."""
