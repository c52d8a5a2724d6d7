"""Parts of results that are joined: what stays in memory meanwhile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tflite_ort.prediction.array_files import DAMAGED
from tflite_ort.prediction.part_files import told_of
from tflite_ort.prediction.results import Block, ResultColumn
from tflite_ort.prediction.writers import writer_for

_PARTS, _ROWS, _WIDTH = 12, 1024, 2048


def test_joined_tables_do_not_gather_in_memory(tmp_path: Path) -> None:
    """96 MiB in parts of 8 MiB."""
    out = tmp_path / "all.parquet"
    writer = writer_for(out, [ResultColumn("scores", np.dtype(np.float32), (_WIDTH,))])
    paths = [tmp_path / f"{number}.parquet" for number in range(_PARTS)]
    for number, path in enumerate(paths):
        values = np.random.default_rng(number).normal(size=(_ROWS, _WIDTH)).astype(np.float32)
        names = [f"{number}.jpg"] * _ROWS
        writer.part(path, Block(names, [*range(_ROWS)], [None] * _ROWS, [values]))
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        writer.join(paths, out)
    finally:
        pa.set_memory_pool(usual)
    assert counted.max_memory() < 24 << 20  # 33 MiB if groups are kept until they are full
    with pq.ParquetFile(out) as table:
        assert table.metadata.num_rows == _PARTS * _ROWS
        last = table.read_row_group(table.num_row_groups - 1).to_pylist()[-1]
    assert (last["source"], last["row"], last["scores"]) == ("11.jpg", 1023, values[-1].tolist())


def test_one_part_is_the_file(tmp_path: Path) -> None:
    """It is copied; two parts with the same rows give the same table."""
    writer = writer_for(tmp_path / "out.parquet", [ResultColumn("y", np.dtype(np.float32), (3,))])
    values = np.arange(27, dtype=np.float32).reshape(9, 3)
    names, errors = [f"{number}.jpg" for number in range(10)], [None] * 9 + ["no picture"]
    whole, first, second = (tmp_path / name for name in ("whole", "first", "second"))
    writer.part(whole, Block(names, [0] * 10, errors, [values]))
    writer.part(first, Block(names[:4], [0] * 4, errors[:4], [values[:4]]))
    writer.part(second, Block(names[4:], [0] * 6, errors[4:], [values[4:]]))
    one, two = tmp_path / "one.parquet", tmp_path / "two.parquet"
    writer.join([whole], one)
    writer.join([first, second], two)
    assert pq.read_table(one).equals(pq.read_table(two), check_metadata=True)
    assert whole.read_bytes().startswith(one.read_bytes())  # and then what is told of it
    assert told_of(whole) == (10, 1, "no picture") and told_of(first) == (4, 0, "")

    damaged = bytearray(whole.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    whole.write_bytes(damaged)
    with pytest.raises(DAMAGED, match="is damaged"):
        writer.join([whole], tmp_path / "none.parquet")
    assert not (tmp_path / "none.parquet").exists()
