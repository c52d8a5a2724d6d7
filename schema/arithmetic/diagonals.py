"""Where the elements of a band of diagonals lie in a matrix, as TensorFlow's operators have them.

A band lies in an array [diagonals, longest], the highest diagonal first. A shorter one begins at
the left, or ends at the right. A place of -1 is none: there is padding.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_ort.records import record
from tflite_ort.schema.file.errors import ModelError

Places = npt.NDArray[np.int64]

# How diagonals lie where an operator does not say.
ALIGN = "LEFT_LEFT"


@record
class Band:
    """Diagonals from `lower` to `upper`: 0 is the main one, those above it are positive.

    Args:
        align: at which side the diagonals above the main one lie, then those below it.
    """

    lower: int = 0
    upper: int = 0
    align: str = ALIGN

    @classmethod
    def of(cls, k: npt.NDArray[np.integer], align: str) -> Band:
        """The band of one number or two."""
        if k.ndim > 1 or k.size not in (1, 2):
            raise ModelError(f"k has shape {k.shape}, expected one or two diagonals")
        lower, upper = int(k.reshape(-1)[0]), int(k.reshape(-1)[-1])
        if lower > upper:
            raise ModelError(f"diagonals {lower} to {upper}")
        return cls(lower, upper, align)

    @property
    def count(self) -> int:
        """How many diagonals there are."""
        return self.upper - self.lower + 1

    def longest(self, rows: int, columns: int) -> int:
        """How many elements the longest of them has in a matrix."""
        for each in (self.lower, self.upper):
            if each and not -rows < each < columns:
                raise ModelError(f"a matrix of {rows} rows of {columns} has no diagonal {each}")
        return max(0, min(rows + min(self.upper, 0), columns - max(self.lower, 0)))

    def size(self, longest: int, rows: int, columns: int) -> tuple[int, int]:
        """Rows and columns of the matrix of a band; -1 for the least."""
        least = longest - min(self.upper, 0), longest + max(self.lower, 0)
        if rows == -1 and columns == -1:
            rows = columns = max(least)
        rows = least[0] if rows == -1 else rows
        columns = least[1] if columns == -1 else columns
        fits = rows >= least[0] and columns >= least[1]
        if not fits or (rows != least[0] and columns != least[1]):
            raise ModelError(f"a matrix of {rows} rows of {columns} for diagonals of {longest}")
        return rows, columns

    def places(self, rows: int, columns: int) -> Places:
        """The places in the flat matrix of each element [diagonals, longest]."""
        longest, above, below = self.longest(rows, columns), *self.align.split("_")
        found = np.full((self.count, longest), -1, np.int64)
        for row, number in enumerate(range(self.upper, self.lower - 1, -1)):
            length = max(0, min(rows + min(0, number), columns - max(number, 0)))
            left = (number >= 0 and above == "LEFT") or (number <= 0 and below == "LEFT")
            start, at = 0 if left else longest - length, np.arange(length)
            down, right = at + max(-number, 0), at + max(number, 0)
            found[row, start : start + length] = down * columns + right
        return found

    def inverse(self, rows: int, columns: int) -> Places:
        """The place in the flat band of each element of the matrix, flat."""
        places = self.places(rows, columns).reshape(-1)
        found = np.full(rows * columns, -1, np.int64)
        found[places[places >= 0]] = np.flatnonzero(places >= 0)
        return found


def is_band(k: npt.NDArray[np.integer]) -> bool:
    """Whether the band has a dimension for its diagonals."""
    return k.size == 2 and int(k.reshape(-1)[0]) != int(k.reshape(-1)[1])
