"""What looks for faults of devices: programs that hang, and programs that compute something else."""
