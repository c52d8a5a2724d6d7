"""Damaged bytes and bombs: errors that come soon and take little memory."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import flatbuffers
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models import model_path
from tests.schema.test_malformed import SMALL, attempt
from tflite_ort.schema import (
    SubGraph,
    Tensor,
    read_model,
    write_model,
)
from tflite_ort.schema.file.errors import MalformedModel


def real_model() -> bytes:
    return model_path("litert__add_with_const_input.tflite").read_bytes()


@pytest.mark.parametrize("source", [real_model, lambda: write_model(SMALL)])
def test_truncated_at_every_byte(source: Callable[[], bytes]) -> None:
    data = source()
    for length in range(len(data)):
        attempt(data[:length])
    for length in range(len(data) // 2):
        with pytest.raises(MalformedModel):
            read_model(data[:length])


@pytest.mark.parametrize("source", [real_model, lambda: write_model(SMALL)])
@pytest.mark.parametrize("word", [0, 0x7FFFFFFF, 0xFFFFFFFF, 1, 0x80000000, 0x00010001])
def test_every_word_overwritten(source: Callable[[], bytes], word: int) -> None:
    data = source()
    for at in range(0, len(data) - 3, 4):
        attempt(data[:at] + struct.pack("<I", word) + data[at + 4 :])


@given(seed=st.integers(0, 2**32 - 1))
def test_random_bytes(seed: int) -> None:
    draw = random.Random(seed)
    data = bytearray(write_model(SMALL))
    for _ in range(draw.randint(1, 40)):
        data[draw.randrange(8, len(data))] = draw.randrange(256)
    attempt(bytes(data))


@given(tail=st.binary(max_size=200))
def test_random_files(tail: bytes) -> None:
    attempt(struct.pack("<I", 8) + b"TFL3" + tail)


class TestBombs:
    """Small files that say they hold very much."""

    SECONDS, MEGABYTES = 5, 64

    def refuse(self, data: bytes) -> None:
        tracemalloc.start()
        begin = time.process_time()
        try:
            with pytest.raises(MalformedModel, match="unfold"):
                read_model(data)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert time.process_time() - begin < self.SECONDS
        assert peak < self.MEGABYTES << 20

    @staticmethod
    def finish(builder: Any, subgraphs: int) -> bytes:
        builder.StartObject(3)
        builder.PrependUint32Slot(0, 3, 0)
        builder.PrependUOffsetTRelativeSlot(2, subgraphs, 0)
        builder.Finish(builder.EndObject(), file_identifier=b"TFL3")
        return bytes(builder.Output())

    @staticmethod
    def repeated(builder: Any, table: int, count: int) -> int:
        """A vector of `count` offsets, all to `table`."""
        builder.StartVector(4, count, 4)
        for _ in range(count):
            builder.PrependUOffsetTRelative(table)
        return int(builder.EndVector())

    def test_many_subgraphs_of_many_tensors_that_are_one(self) -> None:
        """100 kB for 400 million tensors."""
        builder = flatbuffers.Builder(1 << 18)
        builder.StartObject(1)
        tensors = self.repeated(builder, builder.EndObject(), 20_000)
        builder.StartObject(1)
        builder.PrependUOffsetTRelativeSlot(0, tensors, 0)
        subgraphs = self.repeated(builder, builder.EndObject(), 20_000)
        self.refuse(self.finish(builder, subgraphs))

    def test_many_subgraphs_with_one_long_vector(self) -> None:
        """400 kB for two billion numbers."""
        builder = flatbuffers.Builder(1 << 20)
        inputs = builder.CreateNumpyVector(np.zeros(100_000, np.int32))
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(1, inputs, 0)
        subgraphs = self.repeated(builder, builder.EndObject(), 20_000)
        self.refuse(self.finish(builder, subgraphs))

    def test_many_subgraphs_with_one_long_name(self) -> None:
        builder = flatbuffers.Builder(1 << 20)
        name = builder.CreateString("n" * 400_000)
        builder.StartObject(5)
        builder.PrependUOffsetTRelativeSlot(4, name, 0)
        subgraphs = self.repeated(builder, builder.EndObject(), 20_000)
        self.refuse(self.finish(builder, subgraphs))

    def test_vectors_that_overlap(self) -> None:
        """Every word is the length of a vector and an item of those before it."""
        builder = flatbuffers.Builder(1 << 20)
        count = 20_000
        words = builder.CreateNumpyVector(np.full(2 * count, count, np.int32))
        tables = []
        for index in range(count):
            builder.StartObject(2)
            builder.PrependUOffsetTRelativeSlot(1, words - 4 * index, 0)
            tables.append(builder.EndObject())
        builder.StartVector(4, count, 4)
        for table in tables:
            builder.PrependUOffsetTRelative(table)
        self.refuse(self.finish(builder, builder.EndVector()))

    def test_a_shape_of_very_many_large_dimensions(self) -> None:
        """Their product would be a number of a million digits."""
        huge = replace(SMALL, subgraphs=(SubGraph(tensors=(Tensor((2**31 - 1,) * 100_000),)),))
        begin = time.process_time()
        with pytest.raises(MalformedModel, match="100000 dimensions"):
            read_model(write_model(huge))
        assert time.process_time() - begin < self.SECONDS

    def test_memory_while_reading_damaged_files(self) -> None:
        data = real_model()
        tracemalloc.start()
        for at in range(0, len(data) - 3, 4):
            attempt(data[:at] + b"\xff\xff\xff\x7f" + data[at + 4 :])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4 << 20
