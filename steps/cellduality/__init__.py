"""CellDuality: cell language models that reward themselves by reconstructing their input."""
