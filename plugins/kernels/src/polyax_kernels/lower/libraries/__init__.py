"""Library calls that several backends make in the same way."""
