"""The interpreters: jvp, linearize, transpose, vmap. Each maps programs to programs; none knows a device."""
