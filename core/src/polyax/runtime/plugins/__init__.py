"""The plugin host: hooks, the guarded loader, the registry, the choice of platforms and devices."""
