"""The bytes of a file, read only where they have been verified."""

from __future__ import annotations

import struct
from typing import Any

from tflite_ort.schema.file.budgets import DEFAULT, Budgets
from tflite_ort.schema.file.tables import Array

# Several offsets may lead to one table, so that a small crafted file could unfold into any amount
# of memory. What is read (a table counts as this many bytes, a vector or text twice its size) may
# add up to this many times the file and a little more; views of constants cost nothing.
_TABLE_BYTES = 16
_UNFOLDED = 4
_SLACK = 1 << 16
_UNFOLDS = "the tables and vectors unfold to many times the file"
_MOST_SLOTS = 32

Offsets = tuple[int, ...]

_NO_OFFSETS: Offsets = (0,) * _MOST_SLOTS

# More vtables, which only files made for that have, are not kept beyond their file, and what is
# known of further ones not at all.
_KEPT = 512

_UINT16, _INT32, _UINT32 = struct.Struct("<H"), struct.Struct("<i"), struct.Struct("<I")


class Corrupt(Exception):
    """Something in the file cannot be true; carries the path as it unwinds."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.reason, self.offset = reason, offset
        self.steps: list[str] = []

    @property
    def path(self) -> str:
        """Where in the model, such as ``subgraphs[0].inputs``."""
        return "".join(reversed(self.steps)).removeprefix(".")


class VTable:
    """Where the fields of some tables are.

    Args:
        offsets: by slot; 0 for an absent field.
        layouts: by class of a table, what `read_table` knows of it; None: nothing is kept.
    """

    __slots__ = ("layouts", "offsets")

    def __init__(self, offsets: Offsets, layouts: dict[type, Any] | None) -> None:
        self.offsets, self.layouts = offsets, layouts


# By bytes, of all files: one converter writes the same ones again and again.
_VTABLES: dict[bytes, VTable] = {}


class File:
    """The bytes of a file with what has been read of it.

    `content` holds the bytes as a read-only uint8 array, of which views are made; `data` are the
    same bytes for struct.
    """

    def __init__(self, content: Array, budgets: Budgets = DEFAULT) -> None:
        self.content, self.data, self.size = content, content.data, content.size
        self.positions: dict[int, int] = {}
        self._vtables: dict[int, VTable] = {}
        self.unknown_operators: list[int] = []
        # The root is read twice, first for its version, and counts once.
        self._allowance = _UNFOLDED * self.size + _SLACK + _TABLE_BYTES
        self._tables, self._budgets = -1, budgets

    def check_span(self, at: int, length: int, align: int) -> None:
        """Refuses `length` bytes at `at` that are not all in the file, or not aligned."""
        if at + length > self.size or at < 0:
            raise Corrupt(f"{length} bytes reach past the end of the file ({self.size})", at)
        if at % align:
            raise Corrupt(f"not aligned to {align} bytes", at)

    def follow(self, at: int) -> int:
        """The position that the offset stored at `at` leads to."""
        if not 0 <= at <= self.size - 4 or at % 4:
            self.check_span(at, 4, 4)
        offset: int = _UINT32.unpack_from(self.data, at)[0]
        if not 0 < offset <= self.size - at - 4:
            size = f"{self.size} bytes: perhaps it is cut short"
            raise Corrupt(f"offset {offset} leads out of the file ({size})", at)
        return at + offset

    def table(self, position: int) -> VTable:
        """Where the fields of the table at `position` are; the table is about to be read, and is
        counted."""
        self._tables += 1
        self._allowance -= _TABLE_BYTES
        if self._allowance < 0:
            raise Corrupt(_UNFOLDS, position)
        if self._tables > self._budgets.tables:
            self.check_tables()
        if not 0 <= position <= self.size - 4 or position % 4:
            self.check_span(position, 4, 4)
        (back,) = _INT32.unpack_from(self.data, position)
        start = position - back
        vtable = self._vtables.get(start)
        if vtable is None:
            vtable = self._vtables[start] = self._read_vtable(start, position)
        return vtable

    def _read_vtable(self, start: int, position: int) -> VTable:
        if not 0 <= start <= self.size - 4 or start % 2:
            raise Corrupt(f"vtable at {start}, outside the file or not aligned", position)
        (size,) = _UINT16.unpack_from(self.data, start)
        if size < 4 or size % 2 or start + size > self.size:
            raise Corrupt(f"vtable of {size} bytes", start)
        stored = self.data[start + 4 : start + min(size, 4 + 2 * _MOST_SLOTS)].tobytes()
        vtable = _VTABLES.get(stored)
        if vtable is None:
            count = len(stored) // 2
            offsets = struct.unpack(f"<{count}H", stored) + _NO_OFFSETS[count:]
            vtable = VTable(offsets, {} if len(self._vtables) < _KEPT else None)
            if len(_VTABLES) < _KEPT:
                _VTABLES[stored] = vtable
        return vtable

    def vector(self, at: int, item_size: int, counted: int = 0) -> tuple[int, int]:
        """Position of the items and number of items of the vector that `at` leads to.

        Args:
            counted: what is counted for each item, which is about to be read.
        """
        start, last = self.follow(at), self.size - 4
        if start > last or start % 4:
            self.check_span(start, 4, 4)
        length: int = _UINT32.unpack_from(self.data, start)[0]
        if length * item_size > last - start:
            raise Corrupt(f"vector of {length} items reaches past the end of the file", start)
        if counted:
            self._allowance -= length * counted
            if self._allowance < 0:
                raise Corrupt(_UNFOLDS, start + 4)
        return start + 4, length

    def check_tables(self) -> None:
        """Count the tables against their budget."""
        self._budgets.check("tables", self._tables)
