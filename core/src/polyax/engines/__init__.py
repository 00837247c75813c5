"""For backends that hand whole programs to an engine."""
