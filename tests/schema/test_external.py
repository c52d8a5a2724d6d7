"""Constants in files beside the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflite_ort.schema import (
    Buffer,
    ExternalBuffer,
    ExternalBufferGroup,
    ExternalData,
    MalformedModel,
    Model,
    ModelError,
    SubGraph,
    Tensor,
    read_model,
    write_model,
)

WEIGHTS = np.arange(100).astype(np.uint8)
INSIDE = Tensor((1,), name="inside")
OUTSIDE = Tensor((5,), name="outside", external_buffer=7)


def written(folder: Path, name: str = "weights.bin", **changes: Any) -> Model:
    """A model with a tensor whose data are bytes 10 to 30 of a file, read back from `folder`."""
    buffer = replace(ExternalBuffer(id=7, group=0, offset=10, length=20), **changes)
    model = Model(
        version=3,
        subgraphs=(SubGraph(tensors=(INSIDE, OUTSIDE)),),
        buffers=(Buffer(),),
        external_buffer_groups=(ExternalBufferGroup(name),),
        external_buffers=(buffer,),
    )
    (folder / "model.tflite").write_bytes(write_model(model))
    return read_model(folder / "model.tflite")


def test_data_of_a_file_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(WEIGHTS.tobytes())
    external = ExternalData(written(tmp_path))
    data = external.data(OUTSIDE)
    assert data is not None
    assert data.tobytes() == WEIGHTS[10:30].tobytes()
    assert not data.flags.writeable
    again = external.data(OUTSIDE)
    assert again is not None
    assert np.shares_memory(data, again)
    assert external.data(INSIDE) is None


def test_absolute_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b.bin").write_bytes(WEIGHTS.tobytes())
    model = written(tmp_path / "a", name=str(tmp_path / "b.bin"))
    assert ExternalData(model).data(OUTSIDE) is not None


def test_file_is_only_missed_when_its_data_are_asked_for(tmp_path: Path) -> None:
    external = ExternalData(written(tmp_path))
    with pytest.raises(ModelError, match=r"external buffer 7 cannot be read: .*weights\.bin"):
        external.data(OUTSIDE)


@pytest.mark.parametrize("name", ["../weights.bin", "a/../../weights.bin", ""])
def test_name_that_leaves_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(MalformedModel, match="leaves the model's folder"):
        ExternalData(written(tmp_path, name=name)).data(OUTSIDE)


def test_relative_name_without_a_folder(tmp_path: Path) -> None:
    model = replace(written(tmp_path), folder=None)
    with pytest.raises(ModelError, match="not read from a path"):
        ExternalData(model).data(OUTSIDE)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": 8}, "tensor 'outside': no buffer 7"),
        ({"group": 1}, "group 1 of 1"),
        ({"offset": 90}, "ends at byte 110 of a file of 100"),
        ({"length": 2**64 - 1}, "of a file of 100"),
    ],
)
def test_ranges_that_do_not_fit(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    (tmp_path / "weights.bin").write_bytes(WEIGHTS.tobytes())
    with pytest.raises(MalformedModel, match=reason):
        ExternalData(written(tmp_path, **changes)).data(OUTSIDE)


def test_empty_file(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").touch()
    with pytest.raises(MalformedModel, match="of a file of 0"):
        ExternalData(written(tmp_path)).data(OUTSIDE)
