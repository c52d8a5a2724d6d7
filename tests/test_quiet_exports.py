"""What ONNX Runtime says when it loads exported files: nothing. Names of a batch."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.made_networks import network
from tests.models import model_path, model_paths
from tests.one_op import T, one_op_model
from tflite_ort import ExportError, export_onnx
from tflite_ort.model.resolvers import WellKnownOpResolver
from tflite_ort.schema import BridgeError, Op, TensorType

# Of the models that are not large, one in so many.
_EVERY, _LARGEST = 9, 3_000_000
FORMS: dict[str, dict[str, object]] = {
    "plain": {},
    "decoded": {"decode": True},
    "picture": {"decode": "image"},
    "batch": {"batch": "N"},
}
LOAD = """
import sys, onnxruntime
for path in sys.argv[1:]:
    print(path, file=sys.stderr, flush=True)
    onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
"""


def test_files_load_without_a_word(tmp_path: Path) -> None:
    """At the level of logging that ONNX Runtime has by itself."""
    models = [path for path in model_paths() if path.stat().st_size < _LARGEST][::_EVERY]
    files = []
    for model in models:
        for name, form in FORMS.items():
            path = tmp_path / f"{model.stem}.{name}.onnx"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    export_onnx(model, path, resolver=WellKnownOpResolver(), **form)  # type: ignore[arg-type]
                except BridgeError:
                    continue
            files.append(str(path))
    assert len(files) > len(models)
    command = [sys.executable, "-c", LOAD, *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr.splitlines() == files
    assert done.returncode == 0


@pytest.mark.parametrize("type", [TensorType.UINT8, TensorType.INT32, TensorType.FLOAT32])
@pytest.mark.parametrize("shape", [(1, 3), (1, 8, 8, 3)], ids=["vector", "map"])
def test_decoded_files_of_plain_numbers(shape: tuple[int, ...], type: TensorType) -> None:
    """What an output without a scale gives is made real numbers too."""
    made = T(shape, type)
    content = one_op_model(Op.RESHAPE, [made, T.constant(np.array(shape, np.int32))], [made])
    try:
        proto = export_onnx(content, decode=True)
    except ExportError as error:
        assert "of no kind" in str(error)
        return
    code = "import sys, onnxruntime\nonnxruntime.InferenceSession(sys.stdin.buffer.read())"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=proto.SerializeToString(), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def sizes(proto: object, side: str) -> dict[str, list[object]]:
    return {
        value.name: [each.dim_param or each.dim_value for each in value.type.tensor_type.shape.dim]
        for value in getattr(proto.graph, side)  # type: ignore[attr-defined]
    }


def test_a_batch_has_one_name() -> None:
    plain = export_onnx(network(16, [np.zeros((1, 3))]), batch="N")
    assert [each[0] for each in sizes(plain, "output").values()] == ["N"]
    assert sizes(plain, "input")["picture"][0] == "N"
    with_state = export_onnx(model_path("litert__lstm.tflite"), batch="N", stateful=True)
    assert {each[0] for each in sizes(with_state, "output").values()} == {"N"}
