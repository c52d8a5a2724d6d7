"""A file that is no TFLite model says what it is instead."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.one_op import T, one_op_model
from tflite_ort import export_onnx
from tflite_ort.schema import MalformedModel, Op, read_model


def _zipped(name: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, b"x")
    return stream.getvalue()


def _exported() -> bytes:
    exported: onnx.ModelProto = export_onnx(one_op_model(Op.NEG, [T((2,))], [T((2,))]))
    return exported.SerializeToString()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"),
        (b"<!DOCTYPE html><html lang=en>", "this is a web page"),
        (b"\n<HTML>", "this is a web page"),
        (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "a web page"),
        (b"\x89HDF\r\n\x1a\n" + bytes(20), "Keras model; convert it to TFLite first"),
        (b"\x08\x01\x12\xb1\x80\x01\x0a\x02", "this is a TensorFlow SavedModel"),
        (b"\x1f\x8b\x08\x00" + bytes(20), "packed with gzip"),
        (_zipped("archive/data.pkl"), "this is a PyTorch model"),
        (_zipped("config.json"), "this is a zip archive, perhaps a bundle of models"),
        (b"LITERTLM" + bytes(20), "this is a bundle of models, which open_bundle reads"),
        (b"hello world, I am no model\n", "this is a text file"),
    ],
)
def test_what_a_file_is_instead(content: bytes, said: str) -> None:
    with pytest.raises(MalformedModel, match="not a valid Flatbuffer buffer.*; .*" + said):
        read_model(content)


def test_an_exported_file_is_onnx() -> None:
    with pytest.raises(MalformedModel, match="; this is an ONNX model, which onnxruntime runs"):
        read_model(_exported())


def test_other_bytes_are_not_guessed_at(tmp_path: Path) -> None:
    path = tmp_path / "noise.tflite"
    path.write_bytes(np.arange(100, 200, dtype=np.uint8).tobytes())
    with pytest.raises(MalformedModel, match=r"not b'TFL3' \(byte 4\)"):
        read_model(path)
