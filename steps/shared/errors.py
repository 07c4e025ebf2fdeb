"""The error of bad input, and how reading a file leads to it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class InputError(ValueError):
    """Bad input, said in one line: what is wrong, where, and what is allowed."""


@contextmanager
def reading(path: str | Path, what: str) -> Iterator[None]:
    """Read `path` and take it apart; whatever fails makes an `InputError`: it is not `what`."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # of as many kinds as there are readers
        raise InputError(f"{path}: not {what} ({_reason(error)}){remedy(path)}") from None


def one_line(error: Exception | str) -> str:
    """Return what an error says, on one line of at most 300 characters; its type if nothing."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, KeyError):
        return f"lacks {error}"
    return one_line(error)


def remedy(path: str | Path) -> str:
    """Return what to do about a bad file that the workflow makes; of others it knows nothing."""
    path = Path(path)
    if path.parts[:1] not in (("results",), ("assets",)):
        return ""
    if not os.path.lexists(path):
        return "; snakemake makes it"
    # an asset is a link into the cache, or a folder of such links
    if path.is_symlink():
        path = path.resolve()
    elif links := [link for link in path.glob("*") if link.is_symlink()]:
        path = links[0].resolve().parent
    return f"; remove {path} and run snakemake again"
