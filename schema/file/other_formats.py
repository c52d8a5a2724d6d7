"""What a file that is no TFLite model is instead, told by its first bytes."""

from __future__ import annotations

import re
from collections.abc import Collection

# So much of a file tells.
HEAD = 512
_TFLITE_FIRST = "; convert it to TFLite first"
_BUNDLE = "a bundle of models, which open_bundle reads"

# What a file begins with, and what is said of it.
_KINDS: tuple[tuple[bytes, str], ...] = (
    (rb"\Z", "the file is empty"),
    (rb"version https://git-lfs", "this is a pointer of Git LFS: run git lfs pull"),
    (rb"\s*<(!doctype|html|\?xml.*<error>)", "this is a web page: download the file itself"),
    (rb"\s*<\?xml", "this is XML, perhaps a model of another library"),
    (rb"\x89HDF", f"this is an HDF5 file, such as a Keras model{_TFLITE_FIRST}"),
    (rb"\x08\x01\x12", f"this is a TensorFlow SavedModel{_TFLITE_FIRST}"),
    (rb"\x08[\x03-\x1f]\x12", "this is an ONNX model, which onnxruntime runs as it is"),
    (rb"\x0a.{1,2}\x0a.[!-~]+\x12.[A-Z]", f"this is a frozen TensorFlow graph{_TFLITE_FIRST}"),
    (rb"GGUF", "this is a model of llama.cpp"),
    (rb".{8}\{\"", f"this is a file of weights alone (safetensors){_TFLITE_FIRST}"),
    (rb"\x93NUMPY|\x89PNG|\xff\xd8\xff|RIFF", "this is a picture, a sound or an array, no model"),
    (rb"PK\x03\x04.*(data\.pkl|\.format_version)", f"this is a PyTorch model{_TFLITE_FIRST}"),
    (rb"LITERTLM", f"this is {_BUNDLE}"),
    (rb"PK\x03\x04", f"this is a zip archive, perhaps {_BUNDLE}"),
    (rb"\x1f\x8b", "this is packed with gzip: unpack it"),
    (rb"[\s\x21-\x7e]+\Z", "this is a text file"),
)
# What the files of an archive or a folder are called, and what is said of it.
_ARCHIVES: tuple[tuple[str, str], ...] = (
    (r"(.*/)?saved_model\.pb", f"this is a TensorFlow SavedModel{_TFLITE_FIRST}"),
    (r"model\.weights\.h5", f"this is a Keras model{_TFLITE_FIRST}"),
    (r".*/data\.pkl", f"this is a PyTorch model{_TFLITE_FIRST}"),
    (r".*\.safetensors", f"these are weights alone (safetensors){_TFLITE_FIRST}"),
    (r".*\.onnx", "this is an ONNX model, which onnxruntime runs as it is"),
)


def archive_format(names: Collection[str]) -> str:
    """``; this is ...``: what an archive or a folder with files of these names looks like; empty
    where nothing is known.

    >>> archive_format(["saved_model.pb", "variables"])
    '; this is a TensorFlow SavedModel; convert it to TFLite first'
    """
    for pattern, said in _ARCHIVES:
        if any(re.fullmatch(pattern, name) for name in names):
            return f"; {said}"
    return ""


def other_format(content: bytes) -> str:
    """``; this is ...``: what the beginning of a file looks like; empty where nothing is known.

    >>> other_format(b"<!DOCTYPE html><html>")
    '; this is a web page: download the file itself'
    """
    head = content[:HEAD]
    how = re.DOTALL | re.IGNORECASE
    return next((f"; {said}" for pattern, said in _KINDS if re.match(pattern, head, how)), "")
