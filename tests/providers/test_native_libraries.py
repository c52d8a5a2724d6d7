"""Libraries that a provider needs, and what ONNX Runtime says of providers that fail."""

from __future__ import annotations

import ctypes
from pathlib import Path

import onnxruntime
import pytest

from tests.providers.samples import CUDA
from tflite_ort.providers import native_libraries
from tflite_ort.providers.messages import error_text

_CALL = (
    "/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:146 std::conditional_t<THRW, "
    "void, onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*, int) "
    "[with ERRTYPE = cudaError; bool THRW = true] "
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of that of ONNX Runtime's providers."""
    monkeypatch.setattr(native_libraries, "_FOLDER", tmp_path)
    return tmp_path


def test_a_missing_library_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(path: str) -> None:
        raise OSError("libcuda.so.1: cannot open shared object file: No such file or directory")

    (folder / "libonnxruntime_providers_cuda.so").touch()
    monkeypatch.setattr(ctypes, "CDLL", absent)
    assert native_libraries.missing_library(CUDA).startswith("libcuda.so.1: cannot open")
    assert native_libraries.missing_library("OpenVINOExecutionProvider") == ""  # not installed


def test_a_library_that_is_there_but_none_is_not_missing(folder: Path) -> None:
    (folder / "libonnxruntime_providers_cuda.so").write_bytes(b"not a library")
    assert native_libraries.missing_library(CUDA) == ""


def test_what_onnxruntime_prints_of_its_search_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = list[str]()

    def preload() -> None:
        calls.append("")
        print("Failed to load libcudnn.so.9")

    monkeypatch.setattr(onnxruntime, "preload_dlls", preload)
    native_libraries.load_nvidia_libraries.cache_clear()
    native_libraries.load_nvidia_libraries()
    native_libraries.load_nvidia_libraries()
    assert (calls, capsys.readouterr().out) == ([""], "")
    native_libraries.load_nvidia_libraries.cache_clear()


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            f"{_CALL}{_CALL}CUDA failure 100: no CUDA-capable device is detected ; GPU=-1 ; "
            "hostname=of-a-user ; file=cuda_execution_provider.cc ; line=355 ; expr=cudaSetDevice",
            "CUDA failure 100: no CUDA-capable device is detected",
        ),
        (
            "/onnxruntime_src/core/cuda/cuda_execution_provider_info.cc:63 static onnx::I "
            "onnx::I::FromProviderOptions(const onnx::O&) [ONNXRuntimeError] : 1 : FAIL : "
            'provider_options_utils.h:182 Parse Unknown provider option: "speed".\n',
            'Unknown provider option: "speed".',
        ),
        ("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : a kernel of FAIL", ""),
        (": FAIL : Load model failed", ""),
    ],
)
def test_a_message_has_no_place_in_the_source(message: str, line: str) -> None:
    assert error_text(RuntimeError(message)) == (line or message)
