"""Marks on values: what translators tell of them to the rules on nodes."""

from __future__ import annotations

# The sum of two computed values of one shape, of two or three dimensions.
SUM_OF_EQUALS = "sum of equals"
# The sum of rows and a constant row of their length.
SUM_WITH_ROW = "sum with row"
