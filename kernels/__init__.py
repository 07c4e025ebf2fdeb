"""Operators with a readable reference, a fast CPU path and a Triton path, one package each.

Nothing here imports the rest of the project, so a folder can be copied into other code as it is.
"""
