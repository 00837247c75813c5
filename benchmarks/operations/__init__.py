"""Every public operation that is worth a timing, by family: what it computes, and on which arrays."""
