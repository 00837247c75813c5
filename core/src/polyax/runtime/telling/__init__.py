"""What users are told of the installation and of their programs."""
