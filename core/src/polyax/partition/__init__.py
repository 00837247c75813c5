"""From a program for one device to a program for each device of a mesh: what is cut where, and what they exchange."""
