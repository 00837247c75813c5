"""From a call to a launch: eager primitives, programs, programs on several devices."""
