"""The times of operators and nodes, and what they tell of the quantised networks."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.models import model_path
from tests.one_op import T, one_op_model
from tests.test_partition import chain
from tflite_ort import ExecutionProviderDelegate, Interpreter, StateError
from tflite_ort.command.cli import app
from tflite_ort.command.demo import digits_model
from tflite_ort.schema import Op

# Networks of quantised operators alone: what ONNX Runtime may run of them. Transpose and Reshape
# are where the image enters and the scores leave.
INTEGER_NODES = {
    "Concat",  # of codes
    "QGemm",
    "QLinearAdd",
    "QLinearConv",
    "QLinearGlobalAveragePool",
    "QLinearSoftmax",
    "Reshape",
    "Transpose",
}
INTEGER_NETWORKS = (
    "coral__tf2_mobilenet_v2_1.0_224_ptq.tflite",
    "mlperf-tiny__kws_ref_model.tflite",
    "mlperf-tiny__pretrainedResnet_quant.tflite",
    "mlperf-tiny__vww_96_int8.tflite",
    "tflite-support__mobilenet_v2_1.0_224_quant.tflite",
    "tflm__person_detect.tflite",
)


def ready(model: str) -> Interpreter:
    interpreter = Interpreter(model, num_threads=1)
    interpreter.allocate_tensors()
    return interpreter


def test_every_operator_that_onnx_runtime_runs_takes_time() -> None:
    interpreter = ready(str(digits_model("float32")))
    times = interpreter.profile(3)
    assert all(row.seconds > 0 and row.provider == "CPUExecutionProvider" for row in times)
    assert [row.seconds for row in times] == sorted((row.seconds for row in times), reverse=True)
    labels = {f"{row.operator}_{row.index}" for row in interpreter.delegation()}
    assert {row.operator for row in times} & labels


def test_numpy_kernels_take_time_too() -> None:
    model = one_op_model(Op.COS, [T((2, 3))], [T((2, 3))])
    interpreter = Interpreter(model_content=model, providers=[])
    interpreter.allocate_tensors()
    (row,) = interpreter.profile(2)
    assert (row.operator, row.provider, list(row.nodes)) == ("COS_0", "", ["numpy"])


def test_every_session_of_a_cut_network_takes_time() -> None:
    delegate = ExecutionProviderDelegate("CPUExecutionProvider", max_versions={Op.MUL: 0})
    interpreter = Interpreter(model_content=chain(), providers=[delegate])
    interpreter.allocate_tensors()
    operators = {row.operator for row in interpreter.profile(2)}
    assert operators == {"ADD_0", "MUL_1", "SUB_2"}


def test_a_convolution_in_blocks_is_time_of_its_operator() -> None:
    times = ready(str(model_path("mlperf-tiny__kws_ref_model_float32.tflite"))).profile(1)
    convolutions = {row.operator for row in times if "Conv" in row.nodes}
    assert {name.rpartition("_")[0] for name in convolutions} == {"CONV_2D", "DEPTHWISE_CONV_2D"}
    assert len(convolutions) == 9


def test_profiling_leaves_the_tensors_alone() -> None:
    model = one_op_model(Op.COS, [T((2, 3))], [T((2, 3))])
    interpreter = Interpreter(model_content=model)
    with pytest.raises(StateError):
        interpreter.profile(1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((2, 3), np.float32))
    interpreter.profile(2)
    assert (interpreter.get_tensor(0) == 1).all()
    assert (interpreter.get_tensor(1) == 0).all()


@pytest.mark.parametrize("name", INTEGER_NETWORKS)
def test_quantised_networks_stay_integer(name: str) -> None:
    """No float operator between quantised ones, no Transpose inside, no constant dequantised. A
    long softmax is faster in floats, with the same codes."""
    times = ready(str(model_path(name))).profile(1)
    found = {node for row in times for node in row.nodes if "SOFTMAX" not in row.operator}
    assert found <= INTEGER_NODES
    assert sum("Transpose" in row.nodes for row in times) <= 1


def test_bench_prints_the_profile() -> None:
    result = CliRunner().invoke(app, ["bench", "--profile", str(digits_model("int8"))])
    assert result.exit_code == 0
    assert "QLinearConv" in result.output
    assert "CONV_2D_" in result.output
