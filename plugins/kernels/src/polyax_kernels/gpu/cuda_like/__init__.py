"""What CUDA C shares with its siblings."""
