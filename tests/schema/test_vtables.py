"""What is kept of vtables is bounded, whatever a file has."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tflite_ort.schema.file import file_bytes, verify
from tflite_ort.schema.file.file_bytes import File, VTable
from tflite_ort.schema.file.model import Buffer, Metadata, SubGraph, Tensor


def tables(count: int) -> tuple[File, range]:
    """A file of so many tables, each of which has a vtable like no other; and their positions."""
    # A vtable of one slot, two bytes, and the table, whose offset leads back.
    parts = (struct.pack("<3H2xi", 6, 4, number, 8) for number in range(1, count + 1))
    content = np.frombuffer(b"".join(parts), np.uint8)
    return File(content), range(8, 12 * count, 12)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[bytes, VTable]:
    """The vtables of all files, of which none is known yet."""
    vtables: dict[bytes, VTable] = {}
    monkeypatch.setattr(file_bytes, "_VTABLES", vtables)
    return vtables


def test_equal_vtables_of_two_files_are_one(known: dict[bytes, VTable]) -> None:
    (file, positions), (other, _) = tables(3), tables(3)
    assert [file.table(at).offsets[:2] for at in positions] == [(1, 0), (2, 0), (3, 0)]
    assert [file.table(at) for at in positions] == [other.table(at) for at in positions]
    assert len(known) == 3


def test_further_vtables_are_not_kept(
    known: dict[bytes, VTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_bytes, "_KEPT", 4)
    file, positions = tables(6)
    found = [file.table(at) for at in positions]
    assert [vtable.offsets[0] for vtable in found] == [1, 2, 3, 4, 5, 6]
    assert len(known) == 4
    assert [vtable.layouts is None for vtable in found] == [False] * 4 + [True] * 2
    other, positions = tables(7)  # the last one is new, and of few in its file
    assert [other.table(at).offsets[0] for at in positions] == [1, 2, 3, 4, 5, 6, 7]
    assert len(known) == 4


def test_further_layouts_are_not_kept(
    known: dict[bytes, VTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "_LAYOUTS_KEPT", 2)
    content = np.frombuffer(struct.pack("<2Hi", 4, 4, 4), np.uint8)
    file = File(content)
    for kind in (Buffer, Metadata, SubGraph, Tensor, Tensor):
        assert verify.read_table(file, 4, kind) == kind()
    (vtable,) = known.values()
    assert vtable.layouts is not None
    assert list(vtable.layouts) == [Buffer, Metadata]
