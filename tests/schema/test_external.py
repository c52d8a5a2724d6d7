"""Constants in files beside the model."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tflite_ort import Interpreter, export_onnx
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
    UnreadableModel,
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
        subgraphs=(SubGraph(tensors=(INSIDE, OUTSIDE), outputs=(1,)),),
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


def test_file_is_only_missed_when_its_data_are_asked_for(tmp_path: Path) -> None:
    external = ExternalData(written(tmp_path))
    with pytest.raises(ModelError, match=r"external buffer 7 cannot be read: .*weights\.bin"):
        external.data(OUTSIDE)


@pytest.mark.parametrize("name", ["../weights.bin", "a/../../weights.bin", "", "a\0b", "."])
def test_name_that_leaves_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match="the model's folder"):
        ExternalData(written(tmp_path, name=name)).data(OUTSIDE)


def test_relative_name_without_a_folder(tmp_path: Path) -> None:
    model = replace(written(tmp_path), folder=None)
    with pytest.raises(ModelError, match=r"not read from a path: external_roots="):
        ExternalData(model).data(OUTSIDE)


class TestPlacesOutsideTheFolder:
    """A file that the model may not name, in every way to name it; `secret` holds 100 bytes."""

    @pytest.fixture
    def secret(self, tmp_path: Path) -> Path:
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "secret.bin").write_bytes(WEIGHTS.tobytes())
        return tmp_path / "b" / "secret.bin"

    @pytest.fixture
    def folder(self, secret: Path) -> Path:
        return secret.parents[1] / "a"

    def refuse(self, folder: Path, name: str) -> None:
        with pytest.raises(ModelError, match=r"outside the model's folder: external_roots="):
            ExternalData(written(folder, name=name)).data(OUTSIDE)

    def test_absolute_name(self, folder: Path, secret: Path) -> None:
        self.refuse(folder, str(secret))
        self.refuse(folder, "/etc/passwd")

    def test_link(self, folder: Path, secret: Path) -> None:
        (folder / "weights.bin").symlink_to(secret)
        self.refuse(folder, "weights.bin")

    def test_link_to_a_folder_on_the_way(self, folder: Path, secret: Path) -> None:
        (folder / "deep").symlink_to(secret.parent)
        self.refuse(folder, "deep/secret.bin")

    def test_folder_whose_name_begins_alike(self, folder: Path, secret: Path) -> None:
        beside = folder.with_name("a2")
        beside.mkdir()
        self.refuse(folder, str(secret.rename(beside / "weights.bin")))

    def test_link_within_the_folder(self, folder: Path, secret: Path) -> None:
        (folder / "deep").mkdir()
        secret.rename(folder / "deep" / "inside.bin")
        (folder / "weights.bin").symlink_to("deep/inside.bin")
        assert ExternalData(written(folder)).data(OUTSIDE) is not None
        absolute = str(folder / "weights.bin")
        assert ExternalData(written(folder, name=absolute)).data(OUTSIDE) is not None

    @pytest.mark.parametrize("absolute", [True, False])
    def test_roots_of_the_caller(self, folder: Path, secret: Path, absolute: bool) -> None:
        written(folder, name=str(secret) if absolute else secret.name)
        content = (folder / "model.tflite").read_bytes()
        for source in (folder / "model.tflite", content):
            model = read_model(source, external_roots=[secret.parent])
            data = ExternalData(model).data(OUTSIDE)
            assert data is not None
            assert data.tobytes() == WEIGHTS[10:30].tobytes()
        with pytest.raises(ModelError):
            ExternalData(read_model(content)).data(OUTSIDE)

    def test_roots_reach_the_interpreter_and_the_export(self, folder: Path, secret: Path) -> None:
        written(folder, name=str(secret))
        path = folder / "model.tflite"
        for refused in (lambda: Interpreter(path).allocate_tensors(), lambda: export_onnx(path)):
            with pytest.raises(ModelError, match="outside the model's folder"):
                refused()
        interpreter = Interpreter(path, external_roots=[secret.parent])
        interpreter.allocate_tensors()
        assert interpreter.get_tensor(1).tobytes() == WEIGHTS[10:30].tobytes()
        (weights,) = export_onnx(path, external_roots=[secret.parent]).graph.initializer
        assert onnx.numpy_helper.to_array(weights).tobytes() == WEIGHTS[10:30].tobytes()

    def test_a_root_is_in_a_list(self) -> None:
        with pytest.raises(TypeError, match="list of folders"):
            read_model(b"", external_roots="/tmp")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # a path of 108 bytes at most


def make_zeros(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))


NOT_PLAIN: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "socket": make_socket,
    "device": make_zeros,
}


class TestNoPlainFile:
    """None of these is waited for, and a device is not even opened."""

    @pytest.mark.parametrize("kind", NOT_PLAIN)
    def test_refused(self, tmp_path: Path, kind: str) -> None:
        try:
            NOT_PLAIN[kind](tmp_path / "weights.bin")
        except PermissionError:
            pytest.skip("only root makes devices")
        with pytest.raises(ModelError, match=f"weights.bin' is a {kind}, not a plain file"):
            ExternalData(written(tmp_path)).data(OUTSIDE)
        for read in (read_model, Interpreter, export_onnx):
            with pytest.raises(UnreadableModel, match=f"is a {kind}, not a plain file"):
                read(tmp_path / "weights.bin")

    def test_folder(self, tmp_path: Path) -> None:
        (tmp_path / "weights.bin").mkdir()
        with pytest.raises(ModelError, match="Is a directory"):
            ExternalData(written(tmp_path)).data(OUTSIDE)

    def test_name_with_a_zero(self) -> None:
        for read in (read_model, Interpreter, export_onnx):
            with pytest.raises(UnreadableModel, match="null"):
                read("a\0b")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": 8}, r"no buffer 7 at subgraphs\[0\].tensors\[1\].external_buffer"),
        ({"group": 1}, "group 1, and there are 1"),
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


@pytest.mark.parametrize(("buffer", "length"), [(1, 20), (0, 0)])
def test_an_operator_reads_no_data_that_are_not_there(
    tmp_path: Path, buffer: int, length: int
) -> None:
    """A tensor's own buffer counts, even an empty one; external data may be empty too."""
    (tmp_path / "weights.bin").write_bytes(WEIGHTS.tobytes())
    model = written(tmp_path, length=length)
    outside = replace(OUTSIDE, buffer=buffer)
    graph = SubGraph(tensors=(INSIDE, outside), inputs=(0,), outputs=(1,))
    model = replace(model, subgraphs=(graph,), buffers=(Buffer(), Buffer(WEIGHTS[:0])))
    (tmp_path / "model.tflite").write_bytes(write_model(model))
    with pytest.raises(ModelError, match="output tensor 1 lacks data"):
        Interpreter(str(tmp_path / "model.tflite")).allocate_tensors()
