"""The table of digits: read row by row, other files refused."""

import gzip

import numpy as np
import pytest
from job_helpers import random_digits, write_digits

from steps.shared.digits import read_digits
from steps.shared.runtime import InputError


def test_a_table_is_read_row_by_row(tmp_path):
    table = random_digits(12)[[*range(0, 12, 2), *range(1, 12, 2)]]  # not in order of the labels
    write_digits(tmp_path / "digits.csv.gz", table)
    digits = read_digits(tmp_path / "digits.csv.gz")
    assert digits.images.shape == (12, 28, 28) and digits.images.dtype == np.uint8
    assert digits.images[5, 3, 7] == table[5, 3 * 28 + 7]
    assert np.array_equal(digits.labels, table[:, -1]) and digits.labels.dtype == np.int64


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "not a gzipped table"),
        (b"plain text", "not a gzipped table"),
        (gzip.compress(b"x,1\n"), "not a gzipped table"),
        (gzip.compress(b"5,6,7\n"), "3 columns"),
        (gzip.compress(b"0," * 784 + b"12\n"), "labels up to 12"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "digits.csv.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=rf"digits\.csv\.gz: .*{message}"):
        read_digits(path)
