"""Tools for tests, the topmost layer of the core: whatever users and plugins need to check derivatives and devices."""
