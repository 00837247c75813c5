"""polyax over several processes, connected by MPI."""
