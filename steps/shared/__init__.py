"""What two or more papers use. Papers import it; it imports `kernels` only."""
