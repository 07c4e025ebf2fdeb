"""What two or more papers use. Papers import this package; it imports `kernels` and nothing else."""
