"""From programs to graphs: how each primitive is computed."""
