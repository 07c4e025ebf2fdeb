"""The names of the attention rows, without torch: rows.py says what they are."""

ROWS = (
    "standard",
    "qnorm",
    "qknorm",
    "qknorm_hs",
    "qknorm_ds",
    "quest",
    "elliptical",
    "elliptical_quest",
)
